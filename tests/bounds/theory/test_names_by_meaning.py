"""Unknown names: what other results call so, before the nearest spelling."""

import pytest

from fedbounds.bounds.theory.names_by_meaning import unknown_constant, unknown_symbol
from fedbounds.bounds.theory.registry import load


@pytest.mark.parametrize(
    ("key", "name", "hint"),
    [
        ("jhunjhunwala-2022/fedavg", "delta", "did you mean d (gradient divergence sup|grad F_n - grad f|)?"),
        ("fedau/theorem-2", "d", "did you mean delta (gradient divergence sup|grad F_n - grad f|)?"),
        ("jhunjhunwala-2022/fedavg", "gama", "did you mean gamma or sigma?"),
        ("jhunjhunwala-2022/fedavg", "lr", "did you mean local_step_size?"),
    ],
)
def test_a_name_is_understood_by_its_meaning_first(key, name, hint):
    assert str(unknown_constant("constant", name, load(key).notation)) == f"unknown constant {name!r}; {hint}"


def test_a_symbol_of_an_expression():
    names = {"gradient_divergence_sup": "rho", "rho": "rho", "eta": "eta"}
    assert "did you mean rho (gradient divergence" in str(unknown_symbol("delta", names))
    assert str(unknown_symbol("etta", names)) == (
        "unknown symbol 'etta'; did you mean eta? (fedbounds list --concepts lists them)"
    )
