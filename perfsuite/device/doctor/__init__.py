"""What keeps a device from good measurements, and how each of it is fixed."""
