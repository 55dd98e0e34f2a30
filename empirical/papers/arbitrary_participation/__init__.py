"""Generalized FedAvg under arbitrary participation: algorithms, pseudo-code, runs, instances, invariants."""
