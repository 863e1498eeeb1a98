"""The kernels that llama.cpp launches on an OpenCL device."""
