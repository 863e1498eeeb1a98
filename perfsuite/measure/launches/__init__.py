"""Launches of OpenCL kernels as plans that the native worker runs, and what their records say."""
