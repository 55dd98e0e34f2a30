"""Forms compiled to numpy programs, and their values with conditions and guarantees."""
