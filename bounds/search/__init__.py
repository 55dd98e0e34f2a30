"""Optimal step sizes and numbers of rounds, with certified exclusions."""
