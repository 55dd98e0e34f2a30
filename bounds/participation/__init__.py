"""Constants of participation processes from their moments."""
