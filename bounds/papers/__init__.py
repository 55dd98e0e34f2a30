"""The five papers, one package each, with the same modules."""
