"""The explorer: the theory of a paper in one HTML file that needs neither Python nor a network."""
