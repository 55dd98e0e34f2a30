"""Theorems in TOML files: the same result as from code, every verb, and errors that name the line."""

import json
import os
import re
import tomllib

import numpy as np
import pytest

import fedbounds as fb
from fedbounds.bounds.audit.ledger import why_no_verdict
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory import registry
from fedbounds.bounds.theory.registry import add_theorems, load
from fedbounds.bounds.theory.theorem_file import (
    OF_FILE,
    OF_FORM,
    build_theorem,
    read_theorem_file,
    theorem,
)
from fedbounds.bounds.theory.theorem_schema import theorem_schema
from fedbounds.command_line import main
from fedbounds.empirical.comparison.paper_runs import paper_of

LOCAL_SGD = """\
key = "draft/local-sgd"
title = "Local SGD"
measure = "minimum over rounds of squared gradient norm of f"
setting = "nonconvex, smooth, bounded variance, full participation"
assumptions = ["smooth", "unbiased-noise"]
conditions = ["gamma <= 1/(8*L*I)"]

[terms]
"initial gap" = "4*F/(gamma*I*T)"
"gradient noise" = "2*gamma*L*sigma**2/N"
"""
AT = {"L": 1, "F": 2, "I": 5, "T": 1000, "N": 10, "sigma": 1, "gamma": 0.01}
CONSTANTS = [f"{name}={value}" for name, value in AT.items()]


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(LOCAL_SGD)
    return path


@pytest.fixture(autouse=True)
def _no_added_theorems():
    yield
    registry._ADDED.clear()
    registry.paper.cache_clear()
    registry.statements.cache_clear()


def test_a_file_is_the_result_that_it_says(mine):
    result = load(str(mine))
    assert (result.key, result.kind, result.default) == ("draft/local-sgd", "theorem", "explicit")
    evaluation = fb.evaluate(result, AT)
    assert evaluation.value == pytest.approx(4 * 2 / (0.01 * 5 * 1000) + 2 * 0.01 / 10)
    assert evaluation.valid and not evaluation.guarantee
    assert not fb.evaluate(result, AT | {"gamma": 0.026}).valid
    assert str(result.form().conditions[0].extreme) == "1/(8*I*L)"
    assert [*result.notation] == ["L", "F", "sigma", "gamma", "I", "T", "N"]
    read = read_theorem_file(mine)
    assert read.setting is not None and read.setting.said["participation"] == ("all",)


def test_a_file_says_what_a_paper_says():
    """Theorem 3.1 of Wang & Ji, transcribed: the same values, conditions and units."""
    paper = load("arbitrary-participation/theorem-3.1")
    ours = theorem(
        "draft/theorem-3.1",
        measure="minimum over rounds of squared gradient norm of f",
        symbols={
            "rho": {"dimension": "1", "domain": "(0, 1]", "meaning": "participation norm"},
            **{name: {"dimension": "f/x"} for name in ("nu", "beta", "delta")},
        },
        terms={
            "initial gap": "8*F/(gamma*eta*I*T)",
            "cohort divergence": "126*gamma**2*L**2*I**2*nu**2",
            "participation divergence": "144*gamma**2*L**2*I**2*P**2*beta**2",
            "window divergence": "6*delta**2",
            "local noise": "21*gamma**2*L**2*I*sigma**2",
            "drift noise": "18*gamma**2*L**2*I*P*rho**2*sigma**2",
            "update noise": "4*gamma*eta*L*rho**2*sigma**2",
        },
        conditions=["gamma <= 1/(12*L*I*P)", "gamma*eta <= 1/(2*L*I*P)", "P <= T/2"],
    )
    rng = np.random.default_rng(0)
    for _ in range(20):
        at = dict(zip(("L", "F", "sigma", "nu", "beta", "delta"), rng.uniform(0.1, 3, 6), strict=True))
        at |= {"I": 3, "P": 2, "T": int(rng.integers(2, 9)), "rho": 0.7, "gamma": rng.uniform(0, 0.05), "eta": 4}
        mine, theirs = fb.evaluate(ours, at), fb.evaluate(paper, at, form="explicit")
        assert mine.value == pytest.approx(theirs.value, rel=1e-12) and mine.valid == theirs.valid
        assert [c.admissible for c in mine.conditions] == [c.admissible for c in theirs.conditions]


def test_the_same_in_python():
    made = theorem(
        "draft/sampled",
        measure="average over rounds of squared gradient norm of f",
        where={"e": "gamma*eta*I"},
        terms={"initial gap": "2*F/(e*T)", "participation": "e*L*(N - S)/(S*(N - 1))*mean(w)*d**2"},
        conditions=["gamma <= 1/(8*L*I)", {"text": "e*L <= 1/24", "why": "the descent step"}],
        step_sizes={"eta": "sqrt(I*S)"},
    )
    at = {"F": 1, "L": 2, "d": 0.5, "N": 4, "S": 2, "I": 3, "T": 10, "gamma": 0.01, "w": np.full(4, 0.25)}
    e = 0.01 * 6**0.5 * 3  # eta = sqrt(I S) everywhere
    assert fb.evaluate(made, at).prescribed["eta"] == pytest.approx(6**0.5)
    assert fb.evaluate(made, at).value == pytest.approx(2 / (e * 10) + e * 2 * 2 / (2 * 3) * 0.25 * 0.25)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('"4*F/(gamma*I*T)"', '"4*F/(gama*I*T)"', 9, "unknown symbol 'gama'; did you mean Gamma"),
        ('"4*F/(gamma*I*T)"', '"4*F*delta/(gamma*I*T)"', 9, "unknown symbol 'delta'; did you mean d (gradient diverg"),
        ('"4*F/(gamma*I*T)"', '"4*F/(gamma*I*T"', 9, "terms.initial gap"),
        ('"4*F/(gamma*I*T)"', '"__import__(1)"', 9, "__import__"),
        ("gamma <= 1/(8*L*I)", "gamma 1/(8*L*I)", 6, "must have two sides and one of <=, <, >=, >, =="),
        ("gamma <= 1/(8*L*I)", "gamma =< 1/(8*L*I)", 6, "write <= for =<, e.g. 'gamma <= 1/(8*L*I)'"),
        ("gamma <= 1/(8*L*I)", "1/(8*L*I) ≥ gamma", 6, "write >= for ≥, e.g. '1/(8*L*I) >= gamma'"),
        ('["smooth", "unbiased-noise"]', '["smoth"]', 5, "unknown assumption 'smoth'; did you mean smooth"),
        ("bounded variance", "bonded variance", 4, "unknown property of a setting 'bonded variance'; did you mean bou"),
        (
            "conditions",
            'expectation = "noise"\nconditions',
            6,
            "unknown source of randomness 'noise'; known: communica",
        ),
        ("[terms]", '[symbols]\nB = "relative_dissimilarty"\n[terms]', 9, "did you mean relative_dissimilarity"),
        ("squared gradient norm of f", "gradient", 3, "must be one of squared gradient norm of f, function gap"),
        ("draft/local-sgd", "Local SGD", 1, "must be PAPER/NAME in small letters"),
        ("conditions", "condition", 6, "unknown key 'condition'; did you mean conditions"),
        ("[terms]", "[terme]", 8, "unknown key 'terme'; did you mean terms"),
        (
            "conditions",
            'algorithm = "FedAvg"\nconditions',
            6,
            "'FedAvg' must be in small letters, digits and hyphens; did you mean fedavg?",
        ),
        ("conditions", 'algorithm = "Local SGD"\nconditions', 6, "did you mean local-sgd?"),
    ],
)
def test_an_error_names_the_line(mine, old, new, line, message):
    mine.write_text(LOCAL_SGD.replace(old, new))
    with pytest.raises(FedboundsError) as caught:
        load(str(mine))
    assert f"line {line}: " in str(caught.value) and message in str(caught.value), str(caught.value)


def test_every_command_takes_a_file(mine, capsys, tmp_path):
    for arguments in (
        ["show", str(mine)],
        ["show", str(mine), "--latex"],
        ["eval", f"{mine}:explicit", *CONSTANTS],
        ["optimize", str(mine), "--over", "gamma", *CONSTANTS[:-1]],
        ["rounds", str(mine), "--epsilon", "0.1", *(c for c in CONSTANTS if not c.startswith("T"))],
        ["compare", str(mine), "--vary", "gamma=0.001:0.02:log:3", *CONSTANTS[:-1]],
        ["covers", str(mine)],
        ["list", str(mine)],
    ):
        assert main(arguments) == 0, (arguments, capsys.readouterr().err)
    out = capsys.readouterr().out
    assert "theorem file, which has no proof" in out and "constant not tested" not in out  # no audit was made
    assert "draft/local-sgd  theorem      unknown     Local SGD" in out


def test_a_folder_of_files_is_a_paper(mine, capsys):
    other = mine.with_name("other.toml")
    other.write_text(LOCAL_SGD.replace("local-sgd", "corollary-1"))
    assert [result.key for result in add_theorems(str(mine.parent))] == ["draft/local-sgd", "draft/corollary-1"]
    assert load("draft/corollary-1").kind == "corollary"
    assert main(["list", "--paper", "draft", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert "draft/corollary-1" in json.dumps(listed)
    registry._ADDED.clear()
    assert main(["--theorems", str(mine.parent), "covers", "nonconvex, smooth, full participation", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    assert {row["answer"] for row in rows if row["key"] == "draft/local-sgd"} <= {"covered", "if"}
    registry._ADDED.clear()
    assert main(["list", "--theorems", str(mine.parent), "--paper", "draft"]) == 0  # also after the command
    assert "draft/corollary-1" in capsys.readouterr().out
    with pytest.raises(FedboundsError, match="the paper 'draft' exists"):
        add_theorems(str(mine))
    other.write_text(LOCAL_SGD)
    registry._ADDED.clear()
    with pytest.raises(FedboundsError, match="have the same key draft/local-sgd"):
        add_theorems(str(mine.parent))


def test_the_schema_accepts_what_is_read(mine):
    jsonschema = pytest.importorskip("jsonschema")
    schema = theorem_schema()
    jsonschema.validate(tomllib.loads(LOCAL_SGD), schema)
    for old, new in (("conditions", "condition"), ("minimum over", "least over"), ('"smooth"', '"smoth"')):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(tomllib.loads(LOCAL_SGD.replace(old, new)), schema)
    assert {*schema["properties"]} == {*OF_FILE, *OF_FORM}
    for symbols, legal in (
        ('B = "relative_dissimilarity"', True),
        ('B = { concept = "mine", meaning = "m", latex = "b", dimension = "1" }', True),
        ('B = { concept = "mine", domain = "[0, 1]", dimension = "1", per_client = true }', True),
        ('B = "relative_dissimilarty"', False),
        ('B = { unit = "1" }', False),
    ):
        text = LOCAL_SGD + f"[symbols]\n{symbols}\n"
        assert jsonschema.Draft202012Validator(schema).is_valid(tomllib.loads(text)) is legal


def test_runs_are_compared_with_a_file(mine, capsys, tmp_path):
    mine.write_text(LOCAL_SGD.replace("conditions", 'algorithm = "fedavg"\nconditions'))
    problem = fb.problems.random_quadratic(3, 2, noise=0.1)
    run = fb.moments(fb.algorithms.FedAvg(0.02, 5), problem, fb.participation.Full(3), 40)
    found = fb.confront(run, load(str(mine)))
    assert found.evaluation.constants["gamma"].value == 0.02 and found.valid[-1] and not found.guarantee
    L, F, sigma = (problem.constants()[name].value for name in ("smoothness", "initial_gap", "gradient_noise"))
    assert found.bound[-1] == pytest.approx(4 * F / (0.02 * 5 * 40) + 2 * 0.02 * L * sigma**2 / 3)
    assert found.measured[-1] == pytest.approx(run.gradient_norm_squared[:40].min())
    assert not any("not known to cover" in reason for reason in found.why_not)


@pytest.mark.parametrize(
    "change",
    [
        {"history": 1},
        {"conditions": 3},
        {"conditions": "gamma <= 1/L"},
        {"conditions": ["gamma <= sqrt(-1)"]},
        {"terms": {"a": "sum(F,F)"}},
        {"terms": {"a": "log(0)*F"}},
        {"terms": {"a": "1e999*F"}},
        {"terms": {"a": ["F"]}},
        {"step_sizes": 1},
        {"default": ["x"]},
        {"measure": {"of": "x", "dimension": {"a": 1}}},
        {"terms": None, "forms": {"a\nb": {"terms": {"a": "F"}}}},
        {"terms": None, "forms": {"explicit": {"terms": {"a": "F"}, "conditions": 1}}},
        {"symbols": {"L": 3}},
        {"where": 3},
        {"source": 3},
        {"uses": "x"},
    ],
)
def test_a_wrong_value_is_one_line(change):
    document = {"key": "draft/x", "measure": "minimum over rounds of squared gradient norm of f", "terms": {"a": "F"}}
    document = {name: value for name, value in (document | change).items() if value is not None}
    with pytest.raises(FedboundsError) as caught:
        build_theorem(document, "mine.toml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "domain",
    ["[nan, inf)", "[0, nan]", "[5, 1]", "(1, 1)", "[1, 1)", "[inf, inf]", "[inf, inf)", "(-inf, -inf)",
     "integers in (1, 2)", "integers in [1.2, 1.8]", "integers in [inf, inf]", "[0,1]", ""],
)  # fmt: skip
def test_a_domain_without_a_number_is_refused(mine, domain):
    mine.write_text(f'{LOCAL_SGD}[symbols]\nz = {{ dimension = "1", domain = "{domain}" }}\n')
    with pytest.raises(FedboundsError, match=r"line 12: symbols\.z: a domain reads .* and is not empty"):
        load(str(mine))


@pytest.mark.parametrize(
    ("steps", "circle"),
    [
        ({"gamma": "gamma/2"}, "gamma -> gamma"),
        ({"gamma": "1/(eta*L)", "eta": "1/(gamma*L)"}, "gamma -> eta -> gamma"),
        ({"gamma": "eta*lam/L", "eta": "sqrt(I)", "lam": "gamma*L"}, "gamma -> lam -> gamma"),
    ],
)
def test_step_sizes_that_depend_on_each_other_are_refused(mine, steps, circle):
    symbols = '[symbols]\nlam = { dimension = "1" }\n'
    rows = "\n".join(f'{name} = "{text}"' for name, text in steps.items())
    mine.write_text(f"{LOCAL_SGD}{symbols}[step_sizes]\n{rows}\n")
    with pytest.raises(FedboundsError, match=rf"line 14: step_sizes\.gamma: {circle} is a circle"):
        load(str(mine))


def test_a_step_size_may_depend_on_another(mine):
    mine.write_text(f'{LOCAL_SGD}[step_sizes]\ngamma = "1/(eta*L)"\neta = "40*I"\n')
    at = {name: value for name, value in AT.items() if name != "gamma"}
    assert fb.evaluate(load(str(mine)), at).prescribed["gamma"] == pytest.approx(1 / 200)


MANY = ", ".join(f"{k}*F" for k in range(1, 300))
CHAINS = {  # each name is defined by the one before
    "has parts": "{0}*(1 + {0})",
    "is nested": "sqrt(1 + {0})",
    "exponentials": "exp({0})",
    "towers": "{0}**{0}",
    "min and max": "max({0}, F, L)",
    "beyond 4096": "{0}*{0}",
}
TOO_LARGE = [
    "1e-999999999*F", "1e999999999*F", "F*1e-" + "9" * 5000, "F*1e" + "9" * 5000, "9" * 5000 + "*F", "1e-301*F",
    "1e301*F",
    "0." + "0" * 5000 + "1*F", "(((1e300**64)**64)**64)*F", "F*(((2/3)**64)**64)**-64", "F*floor(exp(1e10))",
    "F*ceiling(exp(exp(10)))", "F*floor(((exp(1000)**64)**64)**64)", "F*floor(exp(2000)*exp(2000)*exp(2000))",
    "F*min(exp(exp(exp(9))), 1)", "F*exp(-1e300)", "F*exp(exp(exp(exp(T))))", "F*T**T**T**T", "F*2**2**2**T**T",
    "F*exp(exp(2**T))", "F*((T**64)**64)**64", f"max({MANY})", f"min({MANY})", f"max(F, min({MANY}))",
    "F*floor(exp(3999) + 1)",
]  # fmt: skip


@pytest.mark.parametrize("text", TOO_LARGE, ids=lambda text: text[:30])
@pytest.mark.parametrize("place", ["terms", "conditions", "where", "step_sizes"])
def test_an_expression_that_is_too_large_to_compute_is_refused(text, place):
    """At once: its value would take for ever."""
    document = {"key": "draft/x", "measure": "minimum over rounds of squared gradient norm of f", "terms": {"a": "F"}}
    document[place] = {"conditions": [f"{text} <= L"], "step_sizes": {"gamma": text}}.get(place, {"a": text})
    with pytest.raises(FedboundsError) as caught:
        build_theorem(document, "mine.toml")
    assert str(caught.value).startswith(f"mine.toml: {place}") and "\n" not in str(caught.value)
    assert not str(caught.value).endswith(": ") and len(str(caught.value)) < 1000


@pytest.mark.parametrize("step", CHAINS.values(), ids=[*CHAINS])
def test_definitions_that_grow_with_each_other_are_refused(step):
    names = {"a0": "gamma*L"} | {f"a{k}": step.format(f"a{k - 1}") for k in range(1, 400)}
    with pytest.raises(FedboundsError, match=r"where\.a\d+: "):
        theorem("draft/x", measure="minimum over rounds of squared gradient norm of f", terms={"a": "F"}, where=names)


def test_a_formula_of_a_step_size_is_refused_if_it_is_too_large(mine, capsys):
    for text in ("1e-999999999/L", "1e999999999/L", "exp(exp(exp(exp(T))))/L", "floor(exp(1e10))/L"):
        assert main(["check", "--against", str(mine), "--step", f"gamma={text}"]) == 2
        assert "--step = " in (said := capsys.readouterr().err) or "--step: " in said


def test_a_maximum_of_many_is_evaluated(mine):
    many = ", ".join(f"{k}*F/(gamma*I*T)" for k in range(1, 51))
    mine.write_text(LOCAL_SGD.replace("4*F/(gamma*I*T)", f"max({many})"))
    found = fb.evaluate(load(str(mine)), AT)
    assert found.terms["initial gap"] == pytest.approx(50 * 2 / (0.01 * 5 * 1000))


@pytest.mark.parametrize(
    ("table", "key", "legal"),
    [
        ("nosuch = 1", "nosuch", "known: algorithm"),
        ("source = { paper = 'Me', paperr = 'x' }", "source.paperr", "did you mean paper?"),
        ("source = { nosuch = 'x' }", "source.nosuch", "known: equations, number, paper"),
        ("conditions = [{ text = 'gamma <= 1/L', whyy = 'x' }]", "conditions.whyy", "did you mean why?"),
        ("measure = { of = 'x', dimenson = '1' }", "measure.dimenson", "did you mean dimension?"),
        ("[symbols.z]\ndimension = '1'\nlatx = 'z'", "symbols.z.latx", "did you mean latex?"),
        ("[[history]]\ndat = '2026-01-01'", "history.dat", "did you mean date?"),
        ("[forms.explicit]\nterms = { a = 'F' }\nterm = 1", "forms.explicit.term", "did you mean terms?"),
        ("[forms.explicit]\nterms = { a = 'F' }\nconditions = [{ text = 'F < 1', y = 'x' }]",
         "forms.explicit.conditions.y", "known: text, why"),
    ],
)  # fmt: skip
def test_every_table_refuses_unknown_keys(mine, table, key, legal):
    first = table.partition(" ")[0]
    kept = [line for line in LOCAL_SGD.splitlines() if not line.startswith(first)]
    head, terms = "\n".join(kept).split("\n[terms]\n")
    terms = "" if "forms" in table else f"\n[terms]\n{terms}"
    mine.write_text(f"{head}\n{table}{terms}\n" if table[0] != "[" else f"{head}{terms}\n{table}\n")
    with pytest.raises(FedboundsError) as caught:
        load(str(mine))
    said = str(caught.value)
    assert re.search(rf", line [1-9]\d*: {re.escape(key)}: unknown key ", said) and legal in said
    schema = pytest.importorskip("jsonschema")
    with pytest.raises(schema.ValidationError):
        schema.validate(tomllib.loads(mine.read_text()), theorem_schema())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("[where]\nT = '1'", "line 12: where.T: T is a symbol: number of rounds"),
        ("[where]\nrounds = '1'", "line 12: where.rounds: rounds is a symbol"),
        ("[where]\nz = '1'\n[symbols]\nz = { dimension = '1' }", "line 12: where.z: z is a symbol"),
        ("[where]\nmax = '1'", "line 12: where.max: max is infinity or a function"),
        ("[where]\ninf = '1'", "line 12: where.inf: inf is infinity or a function"),
        ("[where]\n'a b' = '1'", "line 12: where.a b: 'a b' must be a letter"),
        ("[symbols]\ninf = { dimension = '1' }", "line 12: symbols.inf: inf is infinity"),
        ("[symbols]\nz = { dimension = '1', per_client = 'no' }", "line 12: symbols.z: 'no' must be true or false"),
        ("[symbols]\nz = { dimension = '1', meaning = 3 }", "line 12: symbols.z: 3 must be a text"),
        (
            "[step_sizes]\nT = '5'",
            "line 12: step_sizes.T: T is no step size but the number of rounds; known: gamma, eta",
        ),
        ("[step_sizes]\nsmoothness = '5'", "line 12: step_sizes.smoothness: smoothness is no step size"),
        ("[step_sizes]\nnosuch = '5'", "line 12: step_sizes.nosuch: unknown symbol 'nosuch'"),
        ("uses = ['no such']", "uses: 'no such' must be the key of a result, PAPER/NAME"),
        ("uses = ['']", "uses: '' must be the key of a result, PAPER/NAME"),
        ("uses = ['draft/local-sgd']", "uses: draft/local-sgd is this result itself"),
        ("improves = ['fedau/theorem-2', 'draft/local-sgd']", "improves: draft/local-sgd is this result itself"),
        ("bibtex = '@article{foo, broken'", "bibtex: '@article{foo, broken' must be an entry @TYPE{KEY, ...}"),
        ("bibtex = '@article{foo, title={a}}}'", "must be an entry"),
        ("bibtex = '@article{}'", "must be an entry"),
        ("bibtex = 'Me (2026)'", "must be an entry"),
        ("bibtex = '}@article{foo, a={'", "must be an entry"),
        ("measure = { dimension = '1' }", "line 7: measure: the table needs of ="),
    ],
)
def test_what_would_be_ignored_is_refused(mine, change, message):
    text = LOCAL_SGD.replace('measure = "min', '# "min') if change.startswith("measure") else LOCAL_SGD
    mine.write_text(f"{text}{change}\n" if change[0] == "[" else text.replace("\n[terms]", f"{change}\n\n[terms]"))
    with pytest.raises(FedboundsError) as caught:
        load(str(mine))
    assert message in str(caught.value) and "line " in str(caught.value)


WRONG = [5, True, ["a", 3], {"x": 1}, None]
TEXTS = (
    "title", "statement", "bibtex", "expectation", "given", "setting", "algorithm", "default", "hides", "asymptotic",
    "note", "kind", "bound", "source",
)  # fmt: skip
PLACES = {  # of values of a document, one of which is replaced by a wrong one
    **{name: (name,) for name in sorted({*OF_FILE, *OF_FORM} - {"key"})},
    "source": ("source", "paper"),
    "number": ("source", "number"),
    "equations": ("source", "equations"),
    "measure of": ("measure", "of"),
    "measure dimension": ("measure", "dimension"),
    "measure latex": ("measure", "latex"),
    "measure aggregate": ("measure", "aggregate"),
    "symbol": ("symbols", "z"),
    **{f"symbol {name}": ("symbols", "z", name) for name in ("concept", "meaning", "latex", "domain", "dimension")},
    "definition": ("where", "e"),
    "step": ("step_sizes", "gamma"),
    "term": ("terms", "a"),
    "history date": ("history", "date"),
    **{f"form {name}": ("forms", "explicit", name) for name in OF_FORM},
}


@pytest.mark.parametrize("place", PLACES.values(), ids=[*PLACES])
@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_every_error_names_its_document_once(place, wrong):
    """Wrong kinds of values are refused in one line; the line has the document and the key."""
    document = {"key": "draft/x", "measure": "minimum over rounds of squared gradient norm of f", "terms": {"a": "F"}}
    if place[0] == "forms":
        document = {**document, "forms": {"explicit": {"terms": {"a": "F"}}}}
        del document["terms"]
    inside = {"symbols": {"dimension": "1"}, "measure": {"of": "x"}}.get(place[0], {})
    if place[0] == "history":
        document["history"] = [{place[1]: wrong}] if len(place) > 1 else wrong
    else:
        at = document
        for name in place[:-1]:
            at[name] = at = dict(at[name]) if isinstance(at.get(name), dict) else dict(inside)
        at[place[-1]] = wrong
    try:
        build_theorem(document, "mine.toml")
    except FedboundsError as error:
        assert str(error).startswith("mine.toml: ") and str(error).count("mine.toml") == 1, str(error)
        assert "\n" not in str(error) and place[0] in str(error)


def test_texts_are_no_numbers_and_no_lists():
    for name in TEXTS:
        for wrong in (5, True, ["a"]):
            document = {"key": "draft/x", "measure": "minimum over rounds of squared gradient norm of f"}
            with pytest.raises(FedboundsError, match=f"mine.toml: {name}"):
                build_theorem({**document, "terms": {"a": "F"}, name: wrong}, "mine.toml")


@pytest.mark.parametrize(
    "others",
    [
        {"symbols": {1: "smoothness"}},
        {"symbols": {"z": {1: "smoothness"}}},
        {"terms": {1: "F"}},
        {"where": {None: "F"}},
        {"step_sizes": {1: "1/L"}},
        {"assumptions": {1: "it is"}},
        {"conditions": [{1: "gamma <= 1/L"}]},
        {"history": [{1: "x"}]},
        {"source": {1: "x"}},
        {"forms": {1: {"terms": {"a": "F"}}}},
        {"forms": {"explicit": {"terms": {("a",): "F"}}}},
    ],
    ids=str,
)
def test_keys_that_are_no_texts_are_refused(others):
    terms = {} if {"terms", "forms"} & others.keys() else {"terms": {"a": "F"}}
    with pytest.raises(FedboundsError, match=rf"theorem\(\): {next(iter(others))}.*the key .* must be a text"):
        theorem("draft/x", measure="minimum over rounds of squared gradient norm of f", **terms, **others)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no measure, nor terms"),
        ("\n \n", "there is no measure, nor terms"),
        ("# a comment", "there is no measure, nor terms"),
        ("title = 'x'", "there is no measure, nor terms"),
        ("[terms]\na = 'F'", "there is no measure: write"),
        ("measure = 'minimum over rounds of squared gradient norm of f'", "there are no terms"),
    ],
)
def test_a_file_without_a_measure_or_terms_says_so(mine, text, words):
    mine.write_text(text)
    with pytest.raises(FedboundsError, match=words):
        load(str(mine))


@pytest.mark.parametrize(
    "latex",
    [r"\input{/etc/passwd}", r"\write18{rm}", r"\gama", r"\def\x{y}", r"\newcommand{\a}{b}", r"\href{a}{x}", "x}", "{x",
     "x^2^2", r"\frac{a", r"\left(", "$x$", "%x", "a&b", "a#b", "", "\\", r"\begin{x}", r"\catcode`\@=11"],
)  # fmt: skip
def test_latex_that_no_page_can_show_is_refused(mine, latex):
    mine.write_text(f"{LOCAL_SGD}[symbols]\nz = {{ dimension = '1', latex = {json.dumps(latex)} }}\n")
    with pytest.raises(FedboundsError, match=r"line 12: symbols\.z\.latex: "):
        load(str(mine))
    measure = f"measure = {{ of = 'x', dimension = 'f^2/x^2', latex = {json.dumps(latex)} }}"
    mine.write_text(re.sub("(?m)^measure.*$", lambda _: measure, LOCAL_SGD))
    with pytest.raises(FedboundsError, match=r"line 3: measure\.latex: "):
        load(str(mine))


@pytest.mark.parametrize(
    "latex", [r"\hat\sigma", "D^2", r"\sigma_{\star}", r"\mathcal N", r"\text{a b}", "é", r"\|x\|", r"a\%"]
)
def test_latex_of_symbols_is_taken_as_it_is(mine, latex):
    mine.write_text(
        f"{LOCAL_SGD}'rest' = 'z*F/(gamma*T)'\n[symbols]\nz = {{ dimension = '1', latex = {json.dumps(latex)} }}\n"
    )
    assert load(str(mine)).notation["z"].latex == latex


def test_bibtex_entries_are_taken_as_they_are(mine):
    for entry in ("@article{a:b-1, title = {A {B} \\{ C}}", "@misc{x,}\n\n@book{y, title={Z}}\n", ""):
        mine.write_text(f"bibtex = {json.dumps(entry)}\n{LOCAL_SGD}")
        assert read_theorem_file(mine).bibtex == entry


def test_a_file_does_not_take_the_place_of_a_paper(mine):
    mine.write_text(LOCAL_SGD.replace("draft/local-sgd", "fedau/theorem-2"))
    with pytest.raises(FedboundsError, match="the paper 'fedau' exists; begin its keys with another name"):
        load(str(mine))
    assert why_no_verdict("fedau") == "" and paper_of(load("fedau/theorem-2")) is not None


def test_one_relative_path_is_another_file_in_another_folder(mine, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.toml").write_text(LOCAL_SGD.replace("local-sgd", "elsewhere"))
    os.utime(other / "mine.toml", ns=(mine.stat().st_mtime_ns, mine.stat().st_mtime_ns))
    monkeypatch.chdir(tmp_path)
    assert load("mine.toml").key == "draft/local-sgd"
    monkeypatch.chdir(other)
    assert load("mine.toml").key == "draft/elsewhere"


def test_an_expectation_is_read_in_one_order(mine):
    mine.write_text(LOCAL_SGD.replace("conditions", 'expectation = "participation and gradient noise"\nconditions'))
    assert load(str(mine)).measure.expectation == "gradient noise and participation"


def test_a_concept_of_any_result_is_known(mine):
    mine.write_text(LOCAL_SGD.replace("sigma**2/N", "sigma**2*B**2/N") + '[symbols]\nB = "relative_dissimilarity"\n')
    B = load(str(mine)).notation["B"]
    assert B.concept == "relative_dissimilarity" and str(B.domain) == "[1, inf)" and "dissimilarity" in B.meaning


def test_show_takes_a_file_for_its_graph_and_its_entry(mine, capsys):
    mine.write_text('improves = ["fedau/theorem-2"]\n' + LOCAL_SGD)
    assert main(["show", str(mine), "--graph"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("draft/local-sgd   Local SGD") and "    fedau/theorem-2   " in out
    assert main(["show", str(mine), "--bibtex"]) == 2
    assert "draft has no BibTeX entry; in a theorem file it is the key bibtex" in capsys.readouterr().err
    registry._ADDED.clear()
    registry.paper.cache_clear()
    mine.write_text('bibtex = "@misc{mine}"\n' + LOCAL_SGD)
    assert main(["show", str(mine), "--bibtex"]) == 0
    assert capsys.readouterr().out == "@misc{mine}\n"
    shipped = load("yang-2021/fedavg-full").file
    assert main(["show", shipped, "--graph"]) == 0 and "yang-2021/fedavg-full   " in capsys.readouterr().out
    other = mine.with_name("other.toml")
    other.write_text(LOCAL_SGD)
    registry._ADDED.clear()
    assert main(["--theorems", str(mine), "show", str(other), "--graph"]) == 2
    assert "the key draft/local-sgd is that of another file; change one of them" in capsys.readouterr().err
