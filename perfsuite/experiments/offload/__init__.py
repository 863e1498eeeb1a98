"""The speed of a run against the number of layers that an OpenCL device computes."""
