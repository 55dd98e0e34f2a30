"""The five papers: their results, errata and paper-specific functions."""
