"""What an operation should cost at a shape: padding to tiles, and the ceilings above it."""
