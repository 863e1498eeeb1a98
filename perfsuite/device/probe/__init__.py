"""What a live device says of itself, before anything is installed on it, and the profile that follows from that."""
