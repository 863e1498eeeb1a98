"""What is run: an architecture, its weights (a GGUF file, real or synthetic) and a scenario."""
