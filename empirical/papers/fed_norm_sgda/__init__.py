"""Fed-Norm-SGDA, minimax problems: algorithms, pseudo-code, runs, instances, invariants."""
