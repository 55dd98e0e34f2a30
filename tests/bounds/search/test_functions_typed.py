"""Constants typed as functions of one that is chosen: the window divergence where the interval is."""

import numpy as np
import pytest
from click.testing import CliRunner

import fedbounds
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.search.optimize import Minimum, optimize
from fedbounds.bounds.theory.registry import load
from fedbounds.cli.optimize import optimize as optimize_command
from fedbounds.cli.options import read_functions

THEOREM = load("arbitrary-participation/theorem-3.1")
KNOWN = dict(L=10, F=1, I=5, S=5, sigma=1, nu=1, beta=1, T=10_000)
WORDS = [f"{name}={value}" for name, value in KNOWN.items()]
OVER = ["gamma", "eta", "P"]


def test_the_shell_chooses_an_interval_as_python_does():
    ours = optimize(THEOREM, KNOWN, OVER, within={"eta": (1, 100)}, functions={"delta": lambda P: np.sqrt(9 / P)})
    assert isinstance(ours, Minimum)
    words = [THEOREM.key, "--over", ",".join(OVER), "--within", "eta=1:100", *WORDS, "delta=sqrt(9/P)"]
    said = CliRunner().invoke(optimize_command, words)
    assert f"<= {ours.value:.6g} at P = {ours.at['P']:g}," in said.output, said.output
    for typed in ("delta=sqrt(9/P)", "window_divergence=3*nu/sqrt(interval)"):
        (function,) = read_functions(THEOREM, OVER, [*WORDS, typed], None)[1].values()
        assert [function(P) for P in (1, 4, 9)] == [3, 1.5, 1]


def test_what_is_advised_is_taken(capsys):
    words = ["optimize", THEOREM.key, "--over", "gamma,eta,P", "--within", "eta=1:100", *WORDS]
    assert fedbounds.main([*words, "delta=0.39"]) == 2
    advice = capsys.readouterr().err.rpartition("e.g. ")[2].strip().replace("'", "")
    assert advice == "delta=sqrt(9/P)"
    assert fedbounds.main([*words, advice]) == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [("sqrt(9*Z/P)", "unknown name in delta 'Z'"), ("p/P", "p is a vector"), ("sqrt(1-P)", "math domain error")],
)
def test_a_function_that_cannot_be_computed_is_one_line(text, says):
    constants, functions = read_functions(THEOREM, OVER, [*WORDS, "p=0.1,0.2", f"delta={text}"], None)
    assert "delta" not in constants
    with pytest.raises(FedboundsError, match=says):
        functions["delta"](4)


def test_only_what_depends_on_the_chosen_constant_is_a_function_of_it():
    with pytest.raises(FedboundsError, match="unknown name in F 'P'"):
        read_functions(THEOREM, OVER, ["F=1/P", "delta=sqrt(9/P)"], None)
    constants, functions = read_functions(THEOREM, ["gamma"], ["P=4", "delta=sqrt(9/P)"], None)
    assert constants["delta"] == 1.5 and not functions
