"""What recorders and live records cost, in interleaved pairs."""
