"""The symbols that theorem files use for standard concepts."""

from __future__ import annotations

from fedbounds.bounds.theory.symbols import Notation, read_notation

STANDARD: Notation = read_notation(__file__)
