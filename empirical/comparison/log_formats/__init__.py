"""Readers of the log formats of other tools: one function each, registered in `registry`."""
