"""FedMRN drawn: its theorems against exact moments, and what masks do to an update."""
