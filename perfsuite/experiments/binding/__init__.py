"""Cases of llama.cpp beneath llama-cpp-python: what a program in Python waits for, and where that goes."""
