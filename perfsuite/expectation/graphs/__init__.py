"""The parts that llama.cpp's graphs are built of, a module for each block, as its own builders write them."""
