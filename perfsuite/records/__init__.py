"""What is measured and concluded, as frozen records that the other packages exchange."""
