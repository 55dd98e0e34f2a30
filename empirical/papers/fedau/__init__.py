"""FedAU, unknown participation: algorithms, pseudo-code, runs, instances, invariants."""
