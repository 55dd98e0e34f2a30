"""One function for each kind of picture, and what pictures share: scales, styles, files."""
