"""A pytest-based performance regression harness for on-device LLM inference."""

__version__ = "0.1.0"
