"""Text, tables, progress bars and JSON values."""
