"""What a run should cost, from the architecture and the device's ceilings alone."""
