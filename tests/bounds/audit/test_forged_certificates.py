"""Forged certificates: no statement that the checker accepts is false at any point that a search finds."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Any

import mpmath
import pytest

from fedbounds.bounds.audit import certificate_checker as checker
from fedbounds.bounds.audit.certificates import certificate
from fedbounds.bounds.audit.claim_set import ClaimSet
from tests.bounds.audit.certificate_forgeries import KINDS, forgeries
from tests.bounds.audit.certificate_oracle import Search, value

OF_ONE_STEP = "arbitrary-participation/theorem-3.1[explicit:I=P=1]"
UNROLLED = "arbitrary-participation/lemma-c.1[sharp]"
OF_INNER_PRODUCTS = "fedmrn/lemma-4[sharp]"
SHORT = ("fed-norm-sgda/lemma-a.1[printed]", "tdcd/lemma-1[repaired]")


@cache
def written(claim: str) -> str:
    return json.dumps(certificate(claim_set(claim.partition("/")[0]), claim))


@cache
def claim_set(paper: str) -> ClaimSet:
    return ClaimSet.of(paper)


def accepted(whole: Any) -> bool:
    try:
        checker.checked(whole)
    except checker.Refused:
        return False
    return True


def forged(claim: str, seed: int, count: int, kinds: tuple[str, ...] = tuple(KINDS)) -> Counter[str]:
    """How many forged certificates were accepted, by kind; none of them is false."""
    whole, known, found = json.loads(written(claim)), set[str](), Counter[str]()
    assert accepted(whole) and not list(Search(whole, known=known).counterexamples())
    for k, (kind, changed) in enumerate(forgeries(whole, seed, count, kinds)):
        if accepted(json.loads(json.dumps(changed))):
            wrong = list(Search(changed, seed=k, known=known).counterexamples())
            assert not wrong, f"{claim}, seed {seed}, forgery {k}, {kind}: {wrong}"
            found[kind.partition(",")[0]] += 1
    return found


@pytest.fixture(autouse=True)
def little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "WORK", 10**6)  # the certificates forged here take a tenth of it


@pytest.mark.parametrize(("claim", "count"), [(OF_ONE_STEP, 40), (UNROLLED, 20), (OF_INNER_PRODUCTS, 40)])
def test_no_accepted_forgery_is_false(claim: str, count: int) -> None:
    assert sum(forged(claim, 0, count).values()) < count / 2


@pytest.mark.parametrize(("claim", "kind"), [(OF_ONE_STEP, "another name"), (UNROLLED, "a recursion")])
def test_no_accepted_forgery_of_one_kind_is_false(claim: str, kind: str) -> None:
    assert 0 < forged(claim, 0, 50, (kind,))[kind] < 25


@pytest.mark.long
@pytest.mark.parametrize("claim", [OF_ONE_STEP, UNROLLED, OF_INNER_PRODUCTS, *SHORT])
def test_no_accepted_forgery_among_thousands_is_false(claim: str) -> None:
    found = forged(claim, 1, 1000)
    print(claim, sum(found.values()), dict(found))
    assert sum(found.values()) < 400


# --- the search itself --------------------------------------------------------------------------------------------


def tighter(whole: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each checked step with a conclusion that is a tenth tighter, whatever its reason is."""
    for k, step in enumerate(whole["steps"]):
        if step["rule"] in ("combination", "geometric-sum", "unroll") and step["op"] == "<=" and step["right"] != "0":
            changed = copy.deepcopy(whole)
            changed["steps"] = changed["steps"][: k + 1]
            changed["steps"][k]["right"] = f"({step['right']})*9/10"
            yield step["id"], changed


@pytest.mark.parametrize("claim", [OF_ONE_STEP, UNROLLED])
def test_the_search_finds_steps_that_are_too_tight(claim: str) -> None:
    whole, found = json.loads(written(claim)), Counter[bool]()
    for name, changed in islice(tighter(whole), 0, None, 2):  # every other one
        assert not accepted(changed)
        search = Search(changed, points=8)
        wrong = [w for w in search.counterexamples() if w.startswith(f"{name}: ")]
        found[bool(wrong)] += 1
    assert found[True] > 2 * found[False]  # a step with a bound that is not tight stays true


# --- small parts against mpmath ---------------------------------------------------------------------------------------


def number(pick: random.Random, deep: int) -> str:
    """A random expression in fractions and exponentials."""
    if deep == 0 or pick.random() < 0.2:
        return pick.choice(["1", "2", "7", "exp(1)", "exp(1/2)", "exp(7/12)", "exp(3)", "exp(0)", "exp(-1)", "exp(21)"])
    a, b = number(pick, deep - 1), number(pick, deep - 1)
    linear = [f"({a} + {b})", f"({a} - {b})", f"3*({a})/7", f"-({a})"]
    return pick.choice([*linear, *linear, f"({a})*({b})", f"({a})/({b})", f"({a})**2", f"exp({a})"])


def test_an_enclosure_holds_the_number() -> None:
    pick, read = random.Random(0), 0
    for _ in range(1500):
        text = number(pick, pick.choice([1, 1, 2, 3]))
        checker.spent.clear()
        try:
            low, high = checker.enclosed(checker.Reader(set(), exp=True)(text))
        except checker.Refused:
            continue
        read += 1
        with mpmath.workdps(80):
            exact = mpmath.mpf(1) * eval_number(text)
            at_low, at_high = (mpmath.mpf(e.numerator) / e.denominator for e in (low, high))
            assert at_low - mpmath.mpf(10) ** -50 <= exact <= at_high + mpmath.mpf(10) ** -50, text
            assert high - low < Fraction(1, 10**40)
    assert read > 300


def eval_number(text: str) -> Any:
    exact = value(text, {})
    return mpmath.mpf(exact.numerator) / exact.denominator


def expression(pick: random.Random, deep: int) -> str:
    """A random expression in x >= 0, y real, z > 0, n whole and positive."""
    if deep == 0 or pick.random() < 0.2:
        return pick.choice(["x", "y", "z", "n", "1", "2", "dot(v, v)", "dot(v, w)", "floor(z)", "floor(x/z)"])
    a, b = expression(pick, deep - 1), expression(pick, deep - 1)
    powers = pick.choice(["2", "3", "0", "n", "y", "(1/2)"])
    return pick.choice([f"({a} + {b})", f"({a} - {b})", f"({a})*({b})", f"({a})/({b})", f"({a})**{powers}", f"-({a})"])


SIGNS = {"x": "nonnegative", "y": "real", "z": "positive", "n": "positive"}


def alone(conditions: dict[str, Any], step: dict[str, Any]) -> dict[str, Any]:
    """A certificate of one step."""
    whole: dict[str, Any] = {"format": "fedbounds certificate 1", "claim": "c", "source": "s", "numbers": {}}
    whole["symbols"] = {name: {"sign": sign, "whole": name == "n", "is": name} for name, sign in SIGNS.items()}
    whole |= {"vectors": {"p": {"v": "a vector", "w": "another"}}, "assumptions": {}, "conditions": conditions}
    step |= {"id": "s", "rule": "combination", "multipliers": [], "conditions": [*conditions]}
    end = {key: step[key] for key in ("left", "op", "right", "conditions")}
    for key in ("floors", "positive"):
        if key in step:
            end[key] = step[key]
    whole["statement"] = end | {"measure": "m", "rename": [], "assumptions": [], "follows": {}}
    return whole | {"steps": [step]}


def small(pick: random.Random) -> dict[str, Any]:
    """A random inequality with a random reason: a sum of products of facts, or what stands there."""
    conditions = {}
    for name in pick.sample(["A", "B"], pick.choice([0, 1, 2])):
        left, right = (expression(pick, pick.choice([0, 1])) for _ in range(2))
        conditions[name] = {"left": left, "op": pick.choice(["<=", "<", "=="]), "right": right}
    facts = [f"condition {name}" for name in conditions]
    if pick.random() < 0.3:
        facts += ["floor-below z", "floor-above z", "floor-least z"]
    slacks = {f"condition {c}": f"(({r['right']}) - ({r['left']}))" for c, r in conditions.items()}
    slacks |= {"floor-below z": "(z - floor(z))", "floor-above z": "(floor(z) + 1 - z)", "floor-least z": "floor(z)"}
    plain = ["x", "z", "1", "2*z*n", "x/z", "y**2", "(x + z)*n", "1/z", "floor(z)", "dot(v, v)"]
    above = [
        [
            pick.choice(plain) if pick.random() < 0.8 else expression(pick, 1),
            *pick.choices(facts or ["A"], k=pick.choice([0, 1, 1, 2]) if facts else 0),
        ]
        for _ in "ab"
    ]
    right = " + ".join("*".join([f"({text})", *(slacks[n] for n in names)]) for text, *names in above)
    if pick.random() < 0.3:
        right = pick.choice([f"{right} - 1", f"({right})/2", f"-({right})", f"({right})**2", f"{right} + y"])
    said = {"left": "0", "op": "<=", "right": right, "rest": {"above": above}}
    said["floors"] = [{"of": "z", "least": pick.choice(["0", "0", "1", "-1"]), "because": {"above": [["z"]]}}]
    if pick.random() < 0.2:
        said["rest"]["below"] = [[pick.choice(["1", "z", "y", "1 + x", "x"])]]
    if pick.random() < 0.4:
        part = expression(pick, 1)
        said["positive"] = [{"is": part, "because": {"above": [[pick.choice([part, "z", "1"])]]}}]
    return alone(conditions, said)


def forged_small(seed: int, count: int) -> tuple[int, int]:
    """How many random small certificates were accepted, and for how many of these no point was found."""
    pick, found, empty = random.Random(seed), 0, 0
    for k in range(count):
        whole = small(pick)
        if accepted(json.loads(json.dumps(whole))):
            search = Search(whole, seed=k, points=8)
            assert not list(search.counterexamples()), json.dumps(whole)
            found, empty = found + 1, empty + search.empty
    return found, empty


def test_no_accepted_small_forgery_is_false() -> None:
    found, empty = forged_small(0, 600)
    assert found > 30 and empty < found / 2


@pytest.mark.long
def test_no_accepted_small_forgery_among_thousands_is_false() -> None:
    found, empty = forged_small(1, 20000)
    assert found > 500 and empty < found / 2


def test_the_search_decides_in_fractions_where_the_origin_breaks_a_premise() -> None:
    search = Search(json.loads(written(OF_ONE_STEP)))
    third, free = Fraction(1, 3), ["u", "v"]  # both real: 3 u >= 1 and v >= u
    premises = [([Fraction(3), Fraction(0)], Fraction(-1)), ([Fraction(-1), Fraction(1)], Fraction(0))]
    for least, wrong in ((third, False), (third + Fraction(1, 10**12), True)):
        conclusion = ([Fraction(0), Fraction(1)], -least)  # v >= least
        assert search._exactly([*premises, conclusion], ["<=", "<=", "<="], free) is wrong  # pyright: ignore[reportPrivateUsage]
    never = [*premises, ([Fraction(0), Fraction(-1)], Fraction(0))]  # v <= 0 too: no point at all
    assert not search._exactly([*never, ([Fraction(1), Fraction(0)], Fraction(-9))], ["<="] * 4, free)  # pyright: ignore[reportPrivateUsage]


def test_every_kind_of_forgery_changes_something() -> None:
    whole, pick = json.loads(written(UNROLLED)), random.Random(0)
    for kind, change in KINDS.items():
        changed = [copy.deepcopy(whole) for _ in range(8)]
        done = [change(other, pick) and other != whole for other in changed]
        assert any(done), kind
