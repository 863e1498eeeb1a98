"""The ways to a device, one a module: ``local``, ``ssh``, ``adb``, ``serial``."""
