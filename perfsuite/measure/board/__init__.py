"""The device that a run measures, as the desk sees it: this machine, or a board at the end of a link."""
