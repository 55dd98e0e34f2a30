"""The five papers: their results, and what is about one of them alone."""
