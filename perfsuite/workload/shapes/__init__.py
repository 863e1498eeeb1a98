"""Operations by their shapes: what sweeps and hunts measure, at any sizes and not only those of an architecture."""
