"""Which of many builds of llama.cpp changed the time of a case."""
