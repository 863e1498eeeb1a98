"""What can be asked of a device: a folder for each experiment, beside them what several use; `registry` finds them."""
