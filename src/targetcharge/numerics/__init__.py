"""Numbers: rounding to a known side, searching, tails."""
