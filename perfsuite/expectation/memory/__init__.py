"""What a run needs of memory: weights, KV cache, compute buffers, and the comparison with what was measured."""
