"""Cases that your own tests measure, or count."""
