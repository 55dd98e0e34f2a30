"""The five papers on the floor of runs: algorithms, pseudo-code, runs, instances and invariants, one room each."""
