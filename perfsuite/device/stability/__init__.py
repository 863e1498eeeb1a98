"""Holding a device still while it is measured, and seeing how still it was."""
