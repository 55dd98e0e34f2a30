"""The five papers: algorithms, pseudocode, runs, instances and invariants, one package each."""
