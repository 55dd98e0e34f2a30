"""fedbounds check: right statements pass, and each kind of planted error is found, on its line."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fedbounds.bounds.advice.symbol_check import check_symbols
from fedbounds.bounds.advice.theorem_check import DRAWS, check_result, draw_quantity
from fedbounds.bounds.theory.registry import REFERENCES, load, paper
from fedbounds.bounds.theory.symbols import Quantity, read_domain
from fedbounds.bounds.theory.theorem_file import build_theorem, read_theorem_file, theorem
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
    monkeypatch.setattr(theorem_search, "TRIALS", 70)
    monkeypatch.setattr(theorem_search, "CLIMB", 50)


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
        (SAMPLED, "c*5/8", "c*5/800", "search", 8),  # with many local steps, and a long search
        (SAMPLED, "L**2*(I - 1)*sigma**2", "L**2*(I - 1)*sigma", "units", 10),
        (SAMPLED, "gamma <= 1/(8*L*I)", "gamma <= 1/(8*I)", "units", 5),
        (SAMPLED, "c*e*L*sigma**2/(S*I)", "c*e*L*(2 - S/N)*sigma**2/(S*I)", None, 0),
        (SAMPLED, "3*(N - S)", "3*(S - N)", "sign", 8),
        (SAMPLED, "eta*gamma <= 1/(24*I*L)", 'eta*gamma <= 1/(24*I*L)", "T <= 1", "T >= 2', "feasible", 5),
    ],
)
def test_planted_errors_are_found(tmp_path, capsys, monkeypatch, text, old, new, check, line):
    if new == "c*5/800":
        monkeypatch.setattr(theorem_search, "TRIALS", 600)
        monkeypatch.setattr(theorem_search, "CLIMB", 400)
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
    assert ("warning", "monotone") in {(f.level, f.check) for f in check_result(falling)}


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


def warned(terms, *conditions, **more):
    """Level, check, the term and the text of every finding that is not ok."""
    measure = more.pop("measure", "average over rounds of squared gradient norm of f")
    made = theorem("draft/one", measure=measure, terms=terms, conditions=[*conditions], **more)
    return [(f.level, f.check, f.place[-1] if f.place else "", f.text) for f in check_result(made) if f.level != "ok"]


GAP = {"initial gap": "2*F/(gamma*I*T)"}


@pytest.mark.parametrize(
    ("terms", "conditions", "check", "words"),
    [
        (GAP | {"noise": "gamma*L*(sigma**2 + G**2)"}, ["gamma <= 1/L"], "limits", "is not 0 without noise"),
        (GAP | {"client drift": "gamma**2*L**2*I*d**2"}, ["gamma <= 1/L"], "limits", "depends on d at I = 1"),
        (GAP | {"client drift": "gamma*L*I*Gamma*L"}, ["gamma <= 1/L"], "limits", "depends on Gamma at I = 1"),
        (GAP | {"extra": "gamma*L*sigma**2*log(1 + T)"}, ["gamma <= 1/L"], None, ""),  # a logarithm grows slowly
        (GAP | {"extra": "gamma*L*sigma**2*sqrt(T)"}, ["gamma <= 1/L"], "limits", "grows with T"),
        (GAP | {"noise": "gamma*L*sigma**2*S/N"}, ["gamma <= 1/L", "S <= N"], "monotone", "S + 1 raises"),
        (GAP | {"noise": "gamma*L*sigma**2*N"}, ["gamma <= 1/L"], "monotone", "N + 1 raises"),
        (GAP | {"noise": "gamma*L*sigma**2/N"}, ["gamma <= 1/L"], None, ""),
        (GAP | {"client drift": "gamma**2*L**2*I*(I - 1)*d**2"}, ["gamma <= 1/L"], None, ""),
        (GAP | {"participation": "gamma*L*d**2*(N - S)/(N*S)"}, ["gamma <= 1/L", "S <= N"], None, ""),
        (GAP, ["gamma*L*(1 + gamma*L*I)*(1 + 1000*gamma*L) <= 1e-6"], None, ""),  # only small steps meet it
    ],
)
def test_limits_and_participants(terms, conditions, check, words):
    found = [row for row in warned(terms, *conditions) if row[1] in ("limits", "monotone", "feasible")]
    if check is None:
        assert not found
        return
    assert {row[:3] for row in found} == {("warning", check, [*terms][-1])}
    assert sum(words in text for *_, text in found) == 1


def test_a_constant_without_a_concept_is_said_to_be_kept():
    """A drift by H, which could be a divergence, of a theorem with a factor B that could be any number."""
    symbols = {"H": {"dimension": "f/x"}, "B": {"dimension": "1"}}
    terms = GAP | {"client drift": "gamma**2*L**2*I**2*H**2"}
    ((*_, text),) = warned(terms, "gamma <= 1/(10*L*I*B)", symbols=symbols)
    assert text.endswith("H has no concept, so it was kept; B has none, so it was drawn from [0, inf)")
    symbols["H"]["concept"] = "heterogeneity_offset"
    assert all("1e12 rounds" not in text for *_, text in warned(terms, "gamma <= 1/(10*L*I*B)", symbols=symbols))
    terms = GAP | {"noise": "gamma*L*(sigma**2 + H**2)"}
    found = warned(terms, "gamma <= 1/L", symbols={"H": {"dimension": "f/x"}})
    assert [text.endswith("H has no concept, so it was kept") for *_, text in found] == [True, True]


def test_drift_under_another_participation_is_not_that_of_sgd():
    terms = GAP | {"client drift": "gamma**2*L**2*I*d**2"}
    for setting, warns in (("full participation", True), ("cyclic participation", False)):
        found = warned(terms, "gamma <= 1/L", setting=f"nonconvex, smooth, {setting}, bounded heterogeneity")
        assert any("I = 1" in text for *_, text in found) is warns


def test_an_o_hides_a_constant_with_a_unit():
    terms = {"initial gap": "F*L/T", "noise": "sigma/sqrt(T)"}
    ((level, check, place, text),) = warned(terms, order_only=True)
    assert (level, check, place) == ("warning", "units", "noise")
    assert text.endswith('such as sigma; name what is hidden, e.g. hides = "sigma"')
    assert not warned(terms, order_only=True, hides="one sigma")
    ((level, check, _, text),) = warned({"rate": "F*L*(1 + sigma**2)/T"}, order_only=True)
    assert (level, check) == ("warning", "units") and text.partition("such as ")[2].startswith("1/(F*L); name")
    ((level, check, _, text),) = warned({"rate": "sqrt(1/T)"}, order_only=True)
    assert (level, check) == ("error", "units") and "no monomial in the constants of the form repairs it" in text
    ((level, *_, text),) = [row for row in warned({"rate": "L/(gamma*T)"}, "gamma <= 1/L") if row[1] == "units"]
    assert level == "error" and "would repair it" not in text  # L alone repairs nothing
    ((level, *_, text),) = [row for row in warned({"gap": "F/T + 0*L*F/T"}) if row[1] == "units"]
    assert level == "error"


def test_vectors_and_their_number_agree():
    terms = GAP | {"noise": "gamma*L*sum(w**2)*sigma**2/N"}
    assert not [row for row in warned(terms, "gamma <= 1/L") if row[1] == "feasible"]


FILES = [result.file for name in REFERENCES for result in paper(name).results]
DRIFT = {
    "key": "draft/drift",
    "measure": "average over rounds of squared gradient norm of f",
    "setting": "non-convex, bounded variance, full participation, local steps, gradient dissimilarity",
    "algorithm": "fedavg",
    "conditions": ["gamma <= 1/(10*L*I)"],
    "terms": {"initial gap": "F/(gamma*I*T)", "noise": "gamma*L*sigma**2/N", "drift": "gamma**2*L**2*I**2*Gd**2"},
    "symbols": {"Gd": "heterogeneity_offset"},
}


def symbol_warnings(old="", new="", **change):
    document = json.loads(json.dumps(DRIFT | change).replace(old or "\0", new))
    return [(f.place, f.text) for f in check_symbols(build_theorem(document, "draft.toml"))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: "/".join(file.split("/")[-2:]))
def test_the_constants_of_a_reference_theorem_are_those_of_its_setting(file):
    assert not [*check_symbols(read_theorem_file(file))]


def test_a_constant_without_its_assumption_is_warned_of():
    assert not symbol_warnings()
    (place, text), (_, other) = symbol_warnings("Gd**2", "G**2", symbols={})
    assert place == ("terms", "drift") and text.startswith(
        "G is the bound on |grad f| (gradient_bound), and the setting"
    )
    assert "does not say 'bounded gradients'" in text and other.startswith("the setting bounds the heterogeneity")
    assert not symbol_warnings("Gd**2", "(Gd + G)**2", assumptions={"own": "|grad f(x)| <= G for all x"})
    assert not symbol_warnings("Gd**2", "(Gd + G)**2", setting=DRIFT["setting"] + ", bounded gradients")
    ((_, text),) = symbol_warnings(setting=DRIFT["setting"].replace("bounded variance", "deterministic"))
    assert text.startswith("sigma is the gradient noise") and "'bounded variance' or 'growing variance'" in text
    ((_, text),) = symbol_warnings(setting=DRIFT["setting"].replace("gradient dissimilarity", "arbitrary data"))
    assert text.startswith("Gd is the offset")


def test_a_property_of_the_setting_without_its_constant_is_warned_of():
    ((place, text),) = symbol_warnings("I", "K")
    assert place == ("setting",) and text.startswith("the setting has local steps, and no constant is their number")
    assert text.endswith("; K is the number of iterations, all local steps of all rounds")
    assert not symbol_warnings("I", "K", setting=DRIFT["setting"].replace("local steps", "one local step"))
    ((place, text),) = symbol_warnings(symbols={"Gd": {"dimension": "f/x"}})
    assert place == ("setting",) and text.startswith(
        "the setting bounds the heterogeneity, and no constant measures it"
    )
    assert "(Gd: no concept is given" in text
    assert not symbol_warnings("Gd", "1", symbols={}, order_only=True, hides="heterogeneity, I")
    assert not symbol_warnings("Gd", "1", symbols={}, bound="lower")


def test_the_meaning_of_every_symbol_is_printed(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    text = DESCENT.replace("2*F/(gamma*T)", "2*c*F/(gamma*T)")
    path.write_text(text + '\n[symbols]\nc = { dimension = "1", meaning = "a factor" }\n')
    assert main(["check", str(path), "--no-search"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "L         smoothness of every F_n   (concept smoothness)" in lines
    assert "c         a factor   (no concept)" in lines
    main(["check", str(path), "--no-search", "--json"])
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["symbols"]}
    assert rows["T"] == {"name": "T", "meaning": "number of rounds", "unit": "1", "concept": "rounds"}
    assert rows["c"]["concept"] == ""


def test_what_is_not_checked_is_not_called_passed(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text(DESCENT.replace("conditions =", "#"))
    main(["check", str(path), "--no-search"])
    out = capsys.readouterr().out
    assert "feasible (there is no condition)" in " ".join(out.split()) and "the conditions can hold together" not in out
    path.write_text(DESCENT.replace("gamma <= 1/L", "gamma <= 1/(L*rho)"))  # rho occurs in a condition alone
    main(["check", str(path), "--no-search"])
    out = " ".join(capsys.readouterr().out.split())
    assert "noise and heterogeneity in the conditions occur in the bound" in out
    assert "passed: dimensions of 1 term and 1 condition, constants of" not in out


VECTORS = {"initial gap": "2*F/(gamma*T)", "noise": "gamma*L*sigma**2*sum(w**2)"}
SIZED = {"initial gap": "z**2*2*F/(gamma*T)"}
RATES = {"initial gap": "2*F/(gamma*T)*max(1/p)"}


def domain_of_z(domain):
    return {"z": {"dimension": "1", "domain": domain}}


@pytest.mark.parametrize(
    ("terms", "conditions", "symbols"),
    [
        (GAP, ["gamma <= -1/L"], {}),
        (GAP, ["-1/L >= gamma"], {}),
        (GAP, ["gamma*L == -1"], {}),
        (GAP, ["gamma < 0"], {}),
        (GAP, ["T < 1"], {}),
        (GAP, ["1 <= 0"], {}),
        (GAP, ["log(T) <= -1"], {}),
        (GAP, ["gamma*L*T - T >= gamma*L*T"], {}),
        (GAP, ["T <= 1", "T >= 2"], {}),
        (GAP, ["gamma <= 1/L", "gamma >= 2/L"], {}),
        (GAP, ["gamma == 1/L", "gamma == 2/L"], {}),
        (GAP, ["gamma*L <= 1", "gamma*eta*L >= 3", "eta <= 2"], {}),
        (GAP, ["gamma*L + gamma*L*I <= 1", "gamma*L >= 3"], {}),
        (GAP, ["max(gamma*L, eta) <= 1", "gamma*L >= 2"], {}),
        (GAP, ["gamma*L <= min(1, eta)", "gamma*L >= 2"], {}),
        (GAP, ["sigma**2 <= L*F", "sigma**2 >= 2*L*F", "L*F >= 1"], {}),
        (SIZED, ["z >= 3"], domain_of_z("[1, 2]")),
        (SIZED, ["z <= 1/2"], domain_of_z("[1, 2]")),
        (SIZED, ["z >= 0"], domain_of_z("[-3, -2]")),
        (RATES, ["p >= 2"], {}),
    ],
)
def test_conditions_that_never_hold_are_an_error(terms, conditions, symbols):
    found = [row for row in warned(terms, *conditions, symbols=symbols) if row[1] == "feasible"]
    assert [row[0] for row in found] == ["error"] and found[0][3].startswith("no constants meet "), found


@pytest.mark.parametrize(
    ("terms", "conditions", "symbols"),
    [
        (GAP, ["sigma <= sigma/1000"], {}),  # holds without noise
        (GAP, ["sigma**2 <= L*F", "sigma**2 >= 2*L*F"], {}),  # holds where both are 0
        (VECTORS, ["sum(w**2) <= 1/100"], {}),  # holds for a hundred clients
        (SIZED, ["z*eta*L*gamma <= 1", "L*gamma*eta >= 2", "gamma*L*z == 1/7"], domain_of_z("(-inf, inf)")),
        (GAP, ["eta*(3 - gamma*L)**3 + gamma*L <= 1", "gamma*L == 4"], {}),  # what is added may be negative
    ],
)
def test_conditions_that_random_constants_do_not_meet_are_no_error(terms, conditions, symbols):
    found = [row for row in warned(terms, *conditions, symbols=symbols) if row[1] == "feasible"]
    assert all(row[0] == "warning" and "not decided" in row[3] for row in found), found


@pytest.mark.parametrize(
    ("terms", "conditions"),
    [
        (VECTORS, ["w == 1/N"]),
        (VECTORS, ["1/N == w"]),
        (VECTORS, ["sum(w**2) == 1/N"]),
        (VECTORS, ["N*max(w) <= 1"]),
        (VECTORS, ["w <= 2/N", "N >= 10"]),
        (VECTORS, ["max(w) <= 1/10"]),
        (RATES, ["p >= 0.9"]),
        (RATES, ["p < 1/L"]),
        (RATES, ["p == 1/2"]),
        (RATES, ["p*T >= 1"]),
        (RATES, ["mean(p) == max(p)"]),
    ],
)
def test_conditions_on_vectors_can_hold(terms, conditions):
    assert not [row for row in warned(terms, "gamma <= 1/L", *conditions) if row[1] == "feasible"]


DOMAINS = (
    "(0, inf)", "[0, 1]", "(0, 1)", "[3, 3]", "[50000, inf)", "(50000, inf)", "(-inf, inf)", "(-inf, -3]", "[-2, 5)",
    "integers in [20000, inf)", "integers in (20000, inf)", "integers in [0, 1]", "integers in (1, 3)",
    "integers in [2.5, 9.5]", "integers in [-5, -1]", "integers in (-inf, 0)", "integers in [1, 10)",
    "integers in [100000, 100001]",
)  # fmt: skip


@pytest.mark.parametrize("domain", DOMAINS)
def test_random_constants_are_legal(domain):
    number = Quantity("z", "z", "z", "z", read_domain(domain))
    for quantity in (number, replace(number, shape=("clients",))):
        drawn = draw_quantity(quantity, np.random.default_rng(0))
        assert quantity.domain.contains_all(drawn) and len(drawn) == DRAWS
    assert not [row for row in warned(SIZED, "gamma <= 1/L", symbols=domain_of_z(domain)) if row[1] == "feasible"]


@pytest.mark.parametrize(
    "symbols",
    [
        {"sigma": {"concept": "gradient_noise", "domain": "(0, 1)"}},
        {"d": {"concept": "gradient_divergence_sup", "domain": "(0, 1)"}},
        {"T": {"concept": "rounds", "domain": "integers in [1, 1000]"}},
        {"I": {"concept": "local_steps", "domain": "integers in [2, inf)"}},
        {"S": {"concept": "participating_clients", "domain": "integers in [2, 8]"}},
        {"S": {"concept": "participating_clients", "domain": "integers in [1, 8]"}},
        {"N": {"concept": "clients", "domain": "integers in [2, 8]"}},
        {"F": {"concept": "initial_gap", "domain": "[1, 2]"}},
        {"L": {"concept": "smoothness", "domain": "[1, 2]"}},
    ],
    ids=str,
)
def test_changed_constants_that_leave_their_domain_are_left_out(symbols):
    terms = {
        "initial gap": "2*F/(gamma*T)",
        "noise": "gamma*L*sigma**2/S",
        "drift": "gamma**2*L**2*I*(I - 1)*d**2",
        "participation": "gamma*L*d**2*(N - S)/(N*S)",
    }
    assert not [row for row in warned(terms, "gamma <= 1/L", "S <= N", symbols=symbols) if row[1] != "units"]
