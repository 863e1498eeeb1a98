"""What a run happens on: profile, fingerprint, stability."""
