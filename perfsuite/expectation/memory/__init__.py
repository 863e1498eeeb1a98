"""What a run needs of memory: weights, KV cache, compute buffers, and the comparison with what was measured."""

from perfsuite.expectation.memory.need import MemoryNeed, memory_need

__all__ = ["MemoryNeed", "memory_need"]
