"""One run at a time on a device, by a lock that lies on the device itself."""

from perfsuite.device.lock.holding import break_lock, hold_lock, lock_state

__all__ = ["break_lock", "hold_lock", "lock_state"]
