"""Making a bundle: llama.cpp, its recorders and the worker, compiled here for a device that has no compiler."""
