"""Measuring single operations at any shape: the suite's tiled OpenCL kernels, and ggml's operators."""
