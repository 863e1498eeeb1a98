"""Single operators measured, so that forecasts know a device."""
