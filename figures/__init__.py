"""Pictures: bounds against runs, term by term, each with its data and its provenance beside it."""
