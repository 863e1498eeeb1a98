"""Installing the suite on a device: what is sent, what it needs there, and the program that installs it."""
