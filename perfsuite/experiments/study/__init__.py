"""Model-suite studies: latencies of a token against accuracy, over models and quantisations."""
