"""Numbers: rounding to a known side, and searching."""
