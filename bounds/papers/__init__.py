"""The five papers, one room each, furnished alike."""
