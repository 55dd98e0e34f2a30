"""Where the default form does not apply, the commands name a form of the same result that does."""

import json

import pytest
from click.testing import CliRunner

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.evaluation.form_cache import as_compiled
from fedbounds.bounds.evaluation.numpy_code import compile_result
from fedbounds.bounds.search.other_forms import others
from fedbounds.bounds.search.rounds import rounds
from fedbounds.bounds.theory.registry import results
from fedbounds.cli.evaluate import evaluate as eval_command
from fedbounds.cli.rounds import rounds as rounds_command

KEY = "arbitrary-participation/corollary-4.8"
KNOWN = dict(L=10, F=1, I=5, S=5, sigma=1, N=50, d=1)
WORDS = [f"{name}={value}" for name, value in KNOWN.items()]


def said(command, *words):
    outcome = CliRunner().invoke(command, [KEY, *words, *WORDS])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_eval_names_the_forms_whose_conditions_hold_here():
    value = float(evaluate(KEY, KNOWN | {"T": 10_000}, form="repaired:any-I").value)
    assert f"  valid here (--form): repaired:any-I <= {value:.6g}" in said(eval_command, "T=10000").splitlines()
    assert json.loads(said(eval_command, "T=10000", "--json"))["holds_here"] == {"repaired:any-I": value}
    assert "valid here" not in said(eval_command, "T=10000", "--form", "repaired:integer-P")  # it was asked for
    assert "valid here" not in said(eval_command, "T=10000", "--form", "repaired:any-I")


def test_rounds_names_another_form_that_reaches_the_target():
    least = rounds(KEY, 0.5, KNOWN, form="repaired:any-I").rounds
    assert (
        f"  another form reaches it: repaired:any-I, T = {least}"
        in said(rounds_command, "--epsilon", "0.5").splitlines()
    )
    document = json.loads(said(rounds_command, "--epsilon", "0.5", "--json"))
    assert document["status"] == "never" and document["another_form"] == {"repaired:any-I": least}
    asked = said(rounds_command, "--epsilon", "0.5", "--form", "repaired:integer-P")
    assert "never" in asked and "another form" not in asked


@pytest.mark.parametrize("result", [*results()], ids=lambda r: r.key)
def test_no_form_that_hides_constants_or_is_refuted_is_named(result):
    for form in others(compile_result(result).form()):
        assert not (form.order_only or form.refuted_by or form.asymptotic) and form.own_measure == result.form().measure


def test_the_default_form_is_not_named_beside_itself():
    default = as_compiled(KEY).form()
    assert default.name not in [form.name for form in others(default)]
