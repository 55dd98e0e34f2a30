"""Certificates: what the checker accepts, and that it refuses whatever is changed in one."""

from __future__ import annotations

import ast
import copy
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import sympy as sp

from fedbounds.bounds.audit import certificate_checker as checker
from fedbounds.bounds.audit.certificates import certificate
from fedbounds.bounds.audit.claim_set import ClaimSet
from fedbounds.bounds.audit.signs import NoReason, reason
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from tests.command_line import run

THEOREM = "arbitrary-participation/theorem-3.1"
FORMS = [form.name for form in load(THEOREM).forms]
TOY = dict(L=1, F=5, I=2, P=2, T=8, gamma=1 / 48, eta=6, rho=0.5**0.5, sigma=0.5**0.5, nu=4.25**0.5, beta=0.5, delta=0)


@lru_cache(maxsize=1)
def claim_set() -> ClaimSet:
    return ClaimSet.of("arbitrary-participation")


@lru_cache(maxsize=8)
def written(form: str) -> str:
    return json.dumps(certificate(claim_set(), f"{THEOREM}[{form}]"))


def of(form: str) -> dict[str, Any]:
    return json.loads(written(form))


DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def refused(changed: dict[str, Any]) -> bool:
    try:
        checker.Certificate(changed).check()
    except (checker.Refused, KeyError, ValueError):
        return True
    return False


def test_the_checker_is_one_short_file_of_the_standard_library():
    source = Path(checker.__file__).read_text()
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in imports if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names)
    words = [n.body[0] for n in ast.walk(ast.parse(source)) if isinstance(n, DOCUMENTED) and ast.get_docstring(n)]
    said = {line for word in words for line in range(word.lineno, (word.end_lineno or 0) + 1)}
    code = [line for k, line in enumerate(source.splitlines(), 1) if line.strip() and k not in said]
    assert len(code) < 600


def test_a_bare_python_checks_the_theorem(tmp_path: Path):
    proof, alone = tmp_path / "proof.json", tmp_path / "checker.py"
    proof.write_text(written("explicit"))
    alone.write_text(Path(checker.__file__).read_text())
    done = subprocess.run([sys.executable, "-I", "-S", alone, proof], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = "62 steps, every step checked except 8 checked in part, 23 believed"
    assert done.stdout.splitlines()[-1] == f"verdict: proved if what is believed holds: {counted}"
    assert "where gamma <= 1/12/L/I/P" in done.stdout
    proof.write_text(written("explicit").replace("144", "143"))
    done = subprocess.run([sys.executable, "-I", "-S", alone, proof], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and done.stdout.endswith("\nverdict: refused, for the reason above\n")


LONG = [pytest.param(form, marks=pytest.mark.long) for form in ("explicit:sumsq", "explicit:any-P")]


@pytest.mark.parametrize("form", ["explicit", "explicit:I=1", "sharp", *LONG])
def test_every_step_is_shown_again(form: str):
    whole = of(form)
    trusted = checker.Certificate(whole).check()
    assert all(word in " ".join(trusted) for word in ("descent lemma", "uncorrelated", "the number of steps"))
    assert set(whole["statement"]["conditions"]) == {c.text for c in load(THEOREM).form(form).conditions}


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_theorem_has_a_certificate(form: str):
    assert checker.Certificate(of(form)).check()


def test_the_statement_is_the_bound_that_is_evaluated():
    whole = of("explicit")
    bound = checker.Reader({*whole["symbols"]})(whole["statement"]["right"])
    total = sum(float(c) * value(m) for m, c in bound.above.items())
    evaluation = evaluate(load(THEOREM), TOY, form="explicit")
    assert not bound.below and total == pytest.approx(float(evaluation.value), rel=1e-13)
    assert total == pytest.approx(21.321615, abs=5e-7)


def value(monomial: checker.Monomial) -> float:
    result = 1.0
    for name, power in monomial:
        result *= TOY[name] ** power
    return result


# --- what is changed is noticed ---------------------------------------------------------------------------------------


def changes(form: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """One change each: a side, a premise, a multiplier, a hypothesis, a reason or a symbol."""
    steps = of(form)["steps"]
    (shown := checker.Certificate(of(form))).check()
    for k, step in enumerate(steps):
        for side, worse in (("right", "({})*9/10"), ("left", "({})*10/9")):
            if step[side] not in ("0",):
                yield f"{step['id']} {side}", changed(form, ("steps", k, side), worse.format(step[side]))
        for name in step.get("premises", []):
            yield f"{step['id']} without {name}", without(form, ("steps", k, "premises"), name)
        for j, said in enumerate(step.get("multipliers", [])):
            if said["value"] == "0" or not shown.shown[step["premises"][j]].slack.above:  # an identity adds nothing
                continue
            place = ("steps", k, "multipliers", j, "value")
            yield f"{step['id']} multiplier {j}", changed(form, place, f"({said['value']})*11/10")
        for name in step.get("needs", []):
            yield f"{step['id']} without {name}", without(form, ("steps", k, "assumptions"), name)
        for j, term in enumerate((step.get("rest") or {}).get("above", [])):
            place = ("steps", k, "rest", "above", j, 0)
            yield f"{step['id']} term {j}", changed(form, place, f"({term[0]})*11/10")
    statement = of(form)["statement"]
    yield "the statement's bound", changed(form, ("statement", "right"), f"({statement['right']})*99/100")
    for number in sorted(set(re.findall(r"\b\d{2,}\b", statement["right"]))):
        lower = re.sub(rf"\b{number}\b", str(int(number) - 1), statement["right"])
        yield f"the statement's {number}", changed(form, ("statement", "right"), lower)
    for name in statement["assumptions"]:
        yield f"the statement without {name}", without(form, ("statement", "assumptions"), name)
    for name in statement["conditions"]:
        yield f"the statement without {name}", without(form, ("statement", "conditions"), name)
    for name in ("L", "gamma", "eta", "I", "P"):
        yield f"{name} of any sign", changed(form, ("symbols", name, "sign"), "real")


def changed(form: str, place: tuple[str | int, ...], to: str) -> dict[str, Any]:
    whole = of(form)
    part: Any = whole
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = to
    return whole


def without(form: str, place: tuple[str | int, ...], name: str) -> dict[str, Any]:
    whole = of(form)
    part: Any = whole
    for key in place:
        part = part[key]
    part.remove(name)
    return whole


def test_any_single_change_is_refused():
    tried = dict(changes("explicit:I=P=1"))
    passed = [name for name, whole in tried.items() if not refused(whole)]
    unused = "arbitrary-participation/lemma-c.2/L2.S"  # trusted, and used with the factor 0 where there is no spread
    assert len(tried) > 150 and passed == [f"{unused} right", f"{unused} left"]


def test_constants_of_the_general_theorem_cannot_be_lowered():
    statement = of("explicit")["statement"]
    for number in ("21", "126", "144", "18", "6"):
        lower = re.sub(rf"\b{number}\b", f"({int(number)} - 1/1000)", statement["right"], count=1)
        assert refused(changed("explicit", ("statement", "right"), lower)), number
    assert refused(changed("explicit", ("statement", "right"), statement["right"].replace("8*F", "7*F")))


@pytest.mark.parametrize("condition", range(3))
def test_no_condition_of_the_general_theorem_can_be_dropped(condition: int):
    name = of("explicit")["statement"]["conditions"][condition]
    assert refused(without("explicit", ("statement", "conditions"), name))


def test_an_enclosure_must_hold_the_number():
    whole = of("sharp")
    (name,) = {"K1"} & {*whole["numbers"]}
    low = Fraction(whole["numbers"][name]["low"])
    whole["numbers"][name]["high"] = str(low)
    assert refused(whole)
    whole = of("sharp")
    whole["numbers"][name]["is"] = whole["numbers"][name]["is"].replace("7/12", "8/12")
    assert refused(whole)


def test_a_step_cannot_be_used_before_it_is_shown():
    whole = of("explicit:I=P=1")
    whole["steps"] = whole["steps"][::-1]
    assert refused(whole)


def test_division_by_what_may_be_zero_is_refused():
    whole = of("explicit:I=P=1")
    step = copy.deepcopy(whole["steps"][-1])
    step |= {"id": "zero", "left": "(I - P)/(I - P)", "op": "==", "right": "1", "premises": [], "multipliers": []}
    step.pop("rest", None)
    whole["steps"].insert(0, step)
    with pytest.raises(checker.Refused, match='"zero": it divides by'):
        checker.Certificate(whole).check()


def test_false_lemmas_about_geometric_sums_are_refused():
    whole = of("explicit")
    (step,) = [s for s in whole["steps"] if s["rule"] == "geometric-sum" and s["constant"] == "3"][:1]
    assert not refused(whole)
    step["right"], step["constant"] = step["right"].replace("3", "1"), "1"
    assert refused(whole)


def printed(whole: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    place = tmp_path / "proof.json"
    place.write_text(json.dumps(whole))
    assert checker.main([str(place)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("| ") and len(line) < 80 for line in lines[:-1]) and lines[-1].startswith("verdict: ")
    return " ".join(line[1:].strip() for line in lines)


def test_a_symbol_cannot_be_written_for_a_number():
    whole = of("explicit")
    whole["statement"]["rename"].append({"of": "F", "is": "0"})
    whole["statement"]["right"] = whole["statement"]["right"].replace("(8*F)", "(8*0)").replace("8*F", "8*0")
    assert refused(whole)


def test_a_statement_keeps_the_symbol_of_its_steps_where_they_use_that_of_the_form_for_something_else():
    end = of("explicit:sumsq")["statement"]
    assert end["rename"] == [] and "S_min" in end["right"] and "sumsq" not in end["right"]


def test_what_is_believed_is_printed_whole(tmp_path, capsys):
    """Whoever writes a certificate may believe anything, but not in silence."""
    whole = of("explicit")
    plain = printed(whole, tmp_path, capsys)
    assert "where gamma <= 1/12/L/I/P" in plain and "written: " not in plain
    assert "symbol: gamma: sign positive" in plain and "symbol: I: sign positive, whole True, low 1" in plain
    (left,) = {whole["statement"]["left"]}
    lie = {"id": "lie", "says": "", "left": left, "op": "<=", "right": "0", "rule": "clients", "premises": []}
    lie |= {"conditions": [], "variables": ["own0"], "facts": [], "pointwise": "own0", "sums": [[[1], f"-{left}"]]}
    lie |= {"because": {"above": [["own0"]], "below": [["1"]]}}
    whole["steps"].append(lie)
    whole["statement"]["right"] = "0"
    assert refused(copy.deepcopy(whole))
    whole["steps"][-1]["trusts"] = "a sum"
    said = printed(whole, tmp_path, capsys)
    assert f'checked in part: "lie": {left} <= 0; believed: "a sum"; for every client: 0 <= own0; ' in said
    assert f"the sum over clients with powers [1] of own0: -{left}" in said
    whole = of("explicit")
    name = whole["statement"]["conditions"][0]
    renamed = json.loads(json.dumps(whole).replace(json.dumps(name), '"gamma <= 1000"'))
    renamed = json.loads(json.dumps(renamed).replace(f"condition {name}", "condition gamma <= 1000"))
    assert "gamma <= 1000" not in printed(renamed, tmp_path, capsys)


# --- what a forger tries ----------------------------------------------------------------------------------------------


def forged(right: str, steps: list[dict[str, Any]], **other: Any) -> dict[str, Any]:
    """A certificate of x <= right, where x is nonnegative and y real."""
    symbols = {"x": "nonnegative", "y": "real", "n": "positive"}
    whole: dict[str, Any] = {"format": "fedbounds certificate 1", "claim": "a lie", "source": ""}
    whole["symbols"] = {name: {"sign": sign, "whole": name == "n", "is": name} for name, sign in symbols.items()}
    whole |= {"numbers": {}, "vectors": {"p": {"v": "a vector"}}, "assumptions": {}, "conditions": {}, "steps": steps}
    whole["statement"] = {"left": "x", "op": "<=", "right": right, "measure": "x", "rename": [], "follows": {}}
    whole["statement"] |= {"conditions": [], "assumptions": []}
    return whole | other


def combined(left: str, op: str, right: str, above: list[list[str]], name: str = "s", **other: Any) -> dict[str, Any]:
    rest = {} if op == "==" else {"rest": {"above": above}}
    return {
        "id": name,
        "left": left,
        "op": op,
        "right": right,
        "rule": "combination",
        "multipliers": [],
        **rest,
        **other,
    }


def believed(left: str, op: str, right: str, name: str, **other: Any) -> dict[str, Any]:
    return {"id": name, "left": left, "op": op, "right": right, "rule": "axiom", "trusts": "a word", **other}


def why(whole: Any) -> str:
    with pytest.raises(checker.Refused) as refusal:
        checker.checked(whole)
    return str(refusal.value)


def test_a_small_truth_is_proved_without_belief():
    whole = checker.checked(forged("x + n", [combined("x", "<=", "x + n", [["n"]])]))
    assert whole.verdict == "proved: 1 steps, every step checked" and whole.believed == []


def test_a_number_cannot_carry_the_name_of_a_symbol_or_of_an_inner_product():
    half = {"is": "1/2", "low": "1/2", "high": "1/2"}
    lie = forged("1/2", [combined("x", "<=", "1/2", [["1", "high x"]])], numbers={"x": half})
    assert "two tables" in why(lie)
    for name in ("dot v v", "dot", "floor ([], [])", "\u0445", "x\ny"):
        why(forged("x", [combined("x", "<=", "x", [])], numbers={name: half}))
    assert "two tables" in why(forged("x", [combined("x", "<=", "x", [])], vectors={"p": {"x": "a vector"}}))


@pytest.mark.parametrize("is_", ["exp(exp(1))", "exp(dot(v, v))", "exp(1/n)", "1/exp(1)", "exp(1)**2", "exp(-1)"])
def test_a_number_is_made_of_fractions_and_exponentials_of_fractions(is_: str):
    why(forged("x", [combined("x", "<=", "x", [])], numbers={"K": {"is": is_, "low": "1/9", "high": "9"}}))


@pytest.mark.parametrize(
    "symbol",
    [
        {"sign": "negative", "whole": False},
        {"sign": "Positive", "whole": False},
        {"sign": "real", "whole": "no"},
        {"sign": "positive", "whole": False, "high": "-1"},
        {"sign": "positive", "whole": False, "high": "0"},
        {"sign": "real", "whole": False, "low": "2", "high": "1"},
        {"sign": "positive", "whole": True, "low": "4/3", "high": "5/3"},
        {"sign": "real", "whole": False, "low": "nan"},
        {"sign": "real", "whole": False, "low": "1e999999999"},
    ],
)
def test_a_symbol_has_a_known_sign_and_some_value(symbol: dict[str, Any]):
    whole = forged("x", [combined("x", "<=", "x", [])])
    whole["symbols"]["z"] = {"is": "z", **symbol}
    why(whole)


def test_words_that_are_missing_are_refused():
    for place, key in (([], "claim"), (["statement"], "measure"), ([], "assumptions")):
        whole = forged("x", [combined("x", "<=", "x", [])])
        (whole[place[0]] if place else whole).pop(key)
        assert key in why(whole)


def test_a_condition_cannot_follow_from_a_step_that_rests_on_it():
    small = {"small": {"left": "x", "op": "<=", "right": "1"}}
    step = combined("x", "<=", "1", [["1", "condition small"]], conditions=["small"])
    lie = forged("1", [step], conditions=small)
    lie["statement"] |= {"premises": ["s"], "follows": {"small": [{"above": [["1", "premise s"]]}]}}
    assert "has no key" in why(lie)
    lie["statement"] |= {"conditions": ["small"], "follows": {}}
    del lie["statement"]["premises"]
    assert "where x <= 1" in checker.checked(lie).report()


def test_an_equality_turned_around_is_not_strict():
    conditions = {
        "A": {"left": "x", "op": "==", "right": "x"},
        "A reversed": {"left": "x", "op": "<", "right": "x + 1"},
    }
    step = combined("x", "<=", "x", [], conditions=["A reversed", "A"])
    step["positive"] = [{"is": "y - y", "because": {"above": [["1", "condition A reversed"]]}}]
    assert "two facts" in why(forged("x", [step], conditions=conditions))


def unrolled(**other: Any) -> list[dict[str, Any]]:
    """x starts at 0 and stays below x + n, so that it is at most ((1 + n)**n - 1) if the step is."""
    start, step = believed("x", "==", "0", "start", at="start"), believed("y", "<=", "(1 + n)*x + n", "step")
    end = {"id": "end", "left": "x", "op": "<=", "right": "n*((1 + n)**n - 1)/n", "rule": "unroll", "trusts": "n steps"}
    end |= {
        "premises": ["start", "step"],
        "now": "x",
        "after": "y",
        "multiplier": "1 + n",
        "additive": "n",
        "steps": "n",
    }
    end |= {"varying": [], "still": [], "grows": {"above": [["n"]]}, "adds": {"above": [["n"]]}}
    return [start, step, end | other]


def test_an_induction_needs_its_base_its_step_and_growth():
    right = "n*((1 + n)**n - 1)/n"
    whole = checker.checked(forged(right, unrolled()))
    assert any('"start" (at the start only): x == 0' in line for line in whole.report())
    assert any("now: x; after: y; steps: n; the same in every step: n" in line for line in whole.report())
    assert "differs from step to step" in why(forged(right, unrolled(varying=["n"])))
    assert "at the start only" in why(forged(right, unrolled(premises=["step", "start"])))
    why(forged(right, unrolled(premises=["step"])))
    nothing = {"now": "0", "after": "0", "multiplier": "1", "additive": "0", "left": "0", "right": "-5"}
    zero = [combined("0", "==", "0", [], "start"), combined("0", "<=", "0", [], "step")]
    assert why(forged("x", [*zero, unrolled(**nothing)[-1]])) == '"end": the step leads nowhere'
    flat = {"multiplier": "1", "additive": "0", "right": "-5", "grows": {"above": []}, "adds": {"above": []}}
    steps = [unrolled()[0], believed("y", "<=", "x", "step"), unrolled(**flat)[-1]]
    assert "divides by zero" in why(forged("-5", steps))


def test_what_holds_at_the_start_only_is_no_fact_later():
    start = unrolled()[0]
    lie = combined("x", "<=", "0", [], premises=["start"], multipliers=[{"value": "1"}])
    assert "at the start only" in why(forged("0", [start, lie]))
    assert "the start only" in why(forged("0", [start, lie | {"at": "start"}]))  # the last step is the statement
    assert checker.checked(forged("0", [{k: v for k, v in start.items() if k != "at"}, lie]))  # printed as it is


def test_the_mean_of_what_is_only_bounded_above_cannot_stand_on_the_left():
    lie = {
        "id": "end",
        "left": "x",
        "op": "<=",
        "right": "7",
        "rule": "average",
        "trusts": "rounds",
        "premises": ["one"],
    }
    lie |= {"means": [{"of": "y", "is": "x", "slope": {"above": [["1"]]}}], "varying": [], "still": []}
    assert "the factor of y" in why(forged("7", [believed("y", "<=", "7", "one"), lie]))


def test_a_client_is_no_symbol_and_what_is_said_of_it_is_printed():
    step = {"id": "s", "left": "x", "op": "<=", "right": "0", "rule": "clients", "trusts": "sums", "variables": ["y"]}
    step |= {"facts": [], "pointwise": "y", "because": {"above": [["y"]]}, "sums": [[[1], "-x"]]}
    assert "no new names" in why(forged("0", [step]))
    step |= {
        "variables": ["q"],
        "pointwise": "-q",
        "sums": [[[1], "-x"]],
        "facts": [{"left": "q", "op": "<=", "right": "0"}],
    }
    step |= {"left": "0", "right": "x", "because": {"above": [["1", "client 0"]]}}
    whole = forged("x", [step, combined("x", "<=", "x", [], "t")])
    assert any("for every client: q <= 0" in line for line in checker.checked(whole).report())


def test_a_step_made_an_axiom_does_not_look_checked():
    whole = of("explicit:I=P=1")
    before = checker.checked(whole).verdict
    step = next(s for s in whole["steps"] if s["rule"] == "average")
    for key in ("means", "varying", "still", "random"):
        step.pop(key, None)
    step["rule"] = "axiom"
    after = checker.checked(whole)
    assert after.verdict != before and any(line.startswith(f'believed: "{step["id"]}": ') for line in after.report())


def test_symbols_are_renamed_to_symbols_of_the_same_kind_one_by_one():
    steps = [combined("0", "<=", "x", [["x"]])]
    whole = forged("y", steps)
    whole["statement"] |= {"left": "0", "rename": [{"of": "x", "is": "y"}]}
    assert "may have values" in why(whole)
    whole["statement"] |= {"right": "n + n", "rename": [{"of": "x", "is": "n"}]}
    whole["steps"] = [combined("0", "<=", "x + n", [["x"], ["n"]])]
    assert "something else" in why(whole)


def test_what_is_printed_is_a_line_of_its_own():
    for text in ("x # + y", "x\n", "x + \u0445", "True*x", "1_0*x", "x if x else x"):
        why(forged(text, [combined("x", "<=", text, [])]))
    why(forged("x", [believed("x", "<=", "x", "s", trusts="fine\nproved: 1 steps")]))
    why(forged("x", [believed("x", "<=", "x", "s", trusts=" ")]))


def test_numbers_are_printed():
    said = checker.checked(of("sharp")).report()
    assert any(line.startswith("number: K1 = -12/7 + 12*exp(7/12)/7, between ") for line in said)


def places(part: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in list(part.items() if isinstance(part, dict) else enumerate(part)):
        yield part, key
        if isinstance(value, dict | list):
            yield from places(value)


def test_what_nothing_reads_is_refused():
    plain = forged("n*((1 + n)**n - 1)/n", unrolled())
    for table in (plain, plain["steps"][0], plain["statement"]):
        table["att"] = "start"
        assert "has no key \"['att']\"" in why(plain)
        del table["att"]
    assert checker.checked(plain)


def test_what_is_missing_is_named():
    plain = forged("n*((1 + n)**n - 1)/n", unrolled())
    for name in ("symbols", "steps", "claim"):
        assert f"lacks \"['{name}']\"" in why({key: value for key, value in plain.items() if key != name})
    dropped = copy.deepcopy(plain)
    dropped["steps"][-1]["premises"][0] = "nowhere"
    assert "its premise \"['nowhere']\" is no step that was shown before" in why(dropped)
    theorem = of("sharp")
    combination = next(step for step in theorem["steps"] if step.get("multipliers"))
    combination["premises"].pop()
    assert "multipliers for" in why(theorem)
    assert "is no table" in why([])


@pytest.mark.parametrize("text", ["(x + n + 1)**100", "(1 + x)**60 * (1 + n)**60 * (1 + x + n)**60"])
def test_no_expression_keeps_it_busy(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(checker, "WORK", 10**5)
    assert "too much work" in why(forged(text, [combined("x", "<=", text, [["n"]], "first")]))
    assert checker.Certificate(forged("x + n", [combined("x", "<=", "x + n", [["n"]])])).check() == []  # of its own


def test_whatever_is_broken_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    plain = [combined("x", "<=", "x + n", [["n"]], "first"), *unrolled()]
    for replaced in (
        None,
        [],
        {},
        "",
        "?",
        1,
        -1.5,
        float("nan"),
        True,
        [[[]]],
        "((((",
        "9**99**99",
        "x/0",
        "(" * 5000,
    ):
        for k in range(sum(1 for _ in places(forged("n*((1 + n)**n - 1)/n", plain)))):
            whole = copy.deepcopy(forged("n*((1 + n)**n - 1)/n", plain))
            part, key = list(places(whole))[k]
            part[key] = replaced
            try:
                checker.checked(whole)
            except checker.Refused as error:
                assert str(error) is not None
    for text in ("[]", "{}", "null", '{"format": 1, "format": 2}', "[" * 100000, '{"format": NaN}', "1e999"):
        place = tmp_path / "broken.json"
        place.write_text(text)
        assert checker.main([str(place)]) == 1
        assert capsys.readouterr().out.endswith("\nverdict: refused, for the reason above\n")
    place.write_text("no json")
    assert checker.main([str(place)]) == 2 and checker.main([]) == 2
    assert "no steps" in why(forged("x", []))


# --- reasons ----------------------------------------------------------------------------------------------------------


def test_a_reason_is_found_where_there_is_one():
    x, y = sp.symbols("x y", positive=True)
    assert reason(x - y, {"given": x - 2 * y}, str) == {"above": [["1", "given"], ["y"]], "below": [["1"]]}
    with pytest.raises(NoReason):
        reason(x - y, {"given": 2 * x - y}, str)


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        (f"{THEOREM}[nothing]", "is no form of arbitrary-participation"),
        ("arbitrary-participation/proposition-4.6[printed]", "has no proof here"),
        ("arbitrary-participation/corollary-3.2[explicit]", "no certificate has a word for yet"),
    ],
)
def test_what_cannot_be_certified_says_why(claim: str, says: str):
    with pytest.raises(FedboundsError, match=re.escape(says)):
        certificate(claim_set(), claim)


def test_the_command_writes_a_file_and_says_how_to_check_it(tmp_path: Path):
    place = tmp_path / "proof.json"
    status, out, _ = run("certify", THEOREM, "--form", "explicit:I=P=1", "--out", str(place), "--json")
    document = json.loads(out)
    assert status == 0
    assert document["steps"] == 31 and document["file"] == str(place)
    assert checker.main([str(place)]) == 0 and checker.main([str(tmp_path / "none.json")]) == 2
