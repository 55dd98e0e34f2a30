"""Random streams, counter-based random numbers, and devices."""
