"""fedbounds check: right statements pass, and each kind of planted error is found, on its line."""

import json

import pytest

from fedbounds.bounds.advice.theorem_check import check_result
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.theorem_file import theorem
from fedbounds.command_line import main
from fedbounds.empirical.falsification import theorem_search

SAMPLED = """\
key = "draft/fedavg"
measure = "minimum over rounds of squared gradient norm of f"
setting = "nonconvex, smooth, bounded variance, uniform sampling, bounded heterogeneity"
algorithm = "generalized-fedavg"
conditions = ["gamma <= 1/(8*L*I)", "eta*gamma <= 1/(24*I*L)"]
where = { e = "gamma*eta*I", c = "64/19" }

[terms]
"initial gap" = "c*F/(e*T)"
"client drift" = "c*5/8*(2*gamma**2*L**2*(I - 1)*sigma**2 + 8*gamma**2*L**2*I*(I - 1)*d**2)"
"gradient noise" = "c*e*L*sigma**2/(S*I)"
"participation" = "c*e*L*3*(N - S)/(max(N - 1, 1)*S)*d**2"
"""
DESCENT = """\
key = "draft/descent"
measure = "minimum over rounds of squared gradient norm of f"
setting = "nonconvex, smooth, full participation, noise=none"
algorithm = "fedavg"
conditions = ["gamma <= 1/L"]

[terms]
"initial gap" = "2*F/(gamma*T)"
"""


@pytest.fixture(autouse=True)
def _short_search(monkeypatch):
    monkeypatch.setattr(theorem_search, "TRIALS", 150)
    monkeypatch.setattr(theorem_search, "CLIMB", 100)


def findings(path, capsys, *options) -> tuple[int, dict[tuple[str, str], dict]]:
    code = main(["check", str(path), "--json", *options])
    rows = json.loads(capsys.readouterr().out)["findings"]
    return code, {(row["level"], row["check"]): row for row in rows}


def test_published_statements_pass(tmp_path, capsys):
    """FedAvg with sampling (the explicit form of Jhunjhunwala et al. 2022), and gradient descent, which is tight."""
    path = tmp_path / "mine.toml"
    path.write_text(SAMPLED)
    code, found = findings(path, capsys)
    assert code == 0 and {level for level, _ in found} == {"ok"}
    path.write_text(DESCENT)
    code, found = findings(path, capsys)
    assert code == 0 and float(found["ok", "search"]["text"].rpartition(" ")[2]) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "old", "new", "check", "line"),
    [
        (DESCENT, "2*F", "F", "search", 7),  # the constant halved
        (DESCENT, "gamma <= 1/L", "gamma <= 3/L", "search", 7),  # a step that does not descend
        (SAMPLED, '"c*F/(e*T)"', '"c*F/(e*T**2)"', "search", 8),  # the wrong power
        (SAMPLED.replace("minimum", "average"), "c*e*L*sigma**2/(S*I)", "c*e*L*sigma**2/(100*S*I)", "search", 8),
        (SAMPLED, "c*5/8", "c*5/800", None, 0),  # looser than a factor of 100: no run shows it
        (SAMPLED, "L**2*(I - 1)*sigma**2", "L**2*(I - 1)*sigma", "units", 10),
        (SAMPLED, "gamma <= 1/(8*L*I)", "gamma <= 1/(8*I)", "units", 5),
        (SAMPLED, "c*e*L*sigma**2/(S*I)", "c*e*L*(2 - S/N)*sigma**2/(S*I)", None, 0),
        (SAMPLED, "3*(N - S)", "3*(S - N)", "sign", 8),
        (SAMPLED, "eta*gamma <= 1/(24*I*L)", 'eta*gamma <= 1/(24*I*L)", "T <= 1", "T >= 2', "feasible", 5),
    ],
)
def test_planted_errors_are_found(tmp_path, capsys, text, old, new, check, line):
    path = tmp_path / "mine.toml"
    assert old in text
    path.write_text(text.replace(old, new))
    code, found = findings(path, capsys, *([] if check in (None, "search") else ["--no-search"]))
    errors = {name: row for (level, name), row in found.items() if level == "error"}
    if check is None:
        assert not errors
        return
    assert code == 1 and check in errors and errors[check]["line"] == line, found
    assert check in ("units", "feasible") or errors[check]["at"]


def test_unusual_statements_are_warned_of():
    made = theorem(
        "draft/odd",
        measure="minimum over rounds of squared gradient norm of f",
        terms={
            "initial gap": "2*F/(gamma*T)",
            "participation": "gamma*L*d**2/S",
            "floor": "L*F",
        },
        conditions=["gamma <= 1/L", "gamma > 0", "S <= N"],
    )
    found = {(f.level, f.check, f.place[-1] if f.place else "") for f in check_result(made)}
    assert {("warning", "limits", "participation"), ("warning", "limits", "floor")} <= found
    assert ("warning", "conditions", "conditions") in found
    falling = theorem(
        "draft/falls",
        measure="average over rounds of squared gradient norm of f",
        terms={"initial gap": "2*F/(gamma*T)", "noise": "gamma*L*sigma**2/(1 + sigma**2/G**2)**2"},
        conditions=["gamma <= 1/L"],
    )
    assert ("error", "monotone") in {(f.level, f.check) for f in check_result(falling)}


def test_the_papers_theorems_have_no_error():
    for key in ("arbitrary-participation/theorem-3.1", "fedmrn/theorem-1"):
        result = load(key)
        assert not [f for f in check_result(result) if f.level == "error" and not result.form(f.form).refuted_by]


@pytest.mark.parametrize(
    ("old", "new", "violated"),
    [
        ('conditions = ["gamma <= 1/L"]', "", True),  # no condition on the step size
        ("noise=none", "bounded variance", True),  # the noise term left out
        ("full participation, noise=none", "uniform sampling, noise=none", True),  # the participation term left out
        ('"2*F/(gamma*T)"', '"4*F/(gamma*I*T)"', True),  # the client drift left out
        ("gamma <= 1/L", "gamma == 1/L", False),
    ],
)
def test_what_the_setting_allows_is_searched(tmp_path, capsys, old, new, violated):
    path = tmp_path / "mine.toml"
    assert old in DESCENT
    text = DESCENT.replace(old, new)
    path.write_text(text.replace("minimum over", "average over") if violated else text)
    code, found = findings(path, capsys)
    assert (code == 1) is violated, found
    assert violated is (("error", "search") in found)


def test_a_bound_below_rounding_is_not_violated(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text("""\
key = "draft/linear"
measure = "last over rounds of function gap"
setting = "strongly convex, smooth, noise=none, full participation"
algorithm = "fedavg"
conditions = ["gamma <= 1/L"]

[terms]
"initial gap" = "(1 - gamma*mu)**T*F"
""")
    code, found = findings(path, capsys)
    assert code == 0 and ("ok", "search") in found, found
