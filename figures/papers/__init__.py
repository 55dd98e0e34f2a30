"""The papers' figures from our runs, one package each."""
