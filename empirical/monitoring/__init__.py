"""Runs in progress: the accountant of participation, advice from a log, and a strategy for Flower."""
