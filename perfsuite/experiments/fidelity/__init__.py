"""The suite's own timings against independent ground truths: phases, and kernels against their duplicates."""
