"""Device profiles: what a device is called, how it is reached, how it must be, and how strictly it is judged."""

from perfsuite.device.profile.building import find_profile
from perfsuite.device.profile.record import DEFAULT_MARGIN_RATIO, PEAK_KINDS, Profile, TheoreticalPeak
from perfsuite.device.profile.search import own_folders, profile_names, unknown_device

__all__ = [
    "DEFAULT_MARGIN_RATIO",
    "PEAK_KINDS",
    "Profile",
    "TheoreticalPeak",
    "find_profile",
    "own_folders",
    "profile_names",
    "unknown_device",
]
