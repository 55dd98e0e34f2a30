"""Bounds against each other: which may be compared, their values over a range, and the largest ratios found."""
