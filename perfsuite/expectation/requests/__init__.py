"""A request with its optimisations: its passes by either convention, and the times that a device's rates give."""
