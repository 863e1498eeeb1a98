"""What a run of the engine takes: its phases, the operators within them, and the kernels that it launches."""
