"""Domains and dimensions in the papers' notation files are read as they are printed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fedbounds.bounds.theory.registry import PAPERS, paper, paper_module


@pytest.mark.parametrize("name", PAPERS)
def test_what_a_notation_file_says_is_what_its_quantities_print(name: str) -> None:
    rows = tomllib.loads(Path(str(paper_module(name).__file__)).with_name("notation.toml").read_text("utf-8"))
    notation = paper(name).results[0].notation
    assert [*rows] == [*notation]
    for symbol, row in rows.items():
        quantity = notation[symbol]
        assert str(quantity.domain) == row.get("domain", "[0, inf)")
        assert str(quantity.dimension) == row.get("dimension", "1")
        assert quantity.shape == (("clients",) if row.get("per_client") else ())
        assert (quantity.latex, quantity.concept, quantity.meaning) == (row["latex"], row["concept"], row["meaning"])
        assert (quantity.default, quantity.total) == (row.get("default"), row.get("total"))
