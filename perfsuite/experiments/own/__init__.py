"""Cases that tests of one's own measure, or count."""
