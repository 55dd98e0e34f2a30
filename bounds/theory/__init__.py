"""Results as objects: symbols, measures, assumptions, forms, and the registry of papers."""
