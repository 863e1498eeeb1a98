"""How often verdicts are wrong on a device: unchanged and slowed builds, judged as any other."""
