"""Orders of bounds in the number of rounds, and exact linear programs."""
