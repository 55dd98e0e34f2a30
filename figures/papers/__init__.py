"""The papers' figures from our own runs, one room each."""
