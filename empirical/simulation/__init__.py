"""Runs: engines, traces, exact moments, reference algorithms and estimates of their time."""
