"""The roofline: a device's ceilings, and where measured work stands under them."""
