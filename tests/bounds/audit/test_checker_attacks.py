"""Attacks on the checker of certificates, each of which once passed or would hide what is shown."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from fedbounds.bounds.audit import certificate_checker as checker
from tests.bounds.audit.test_certificates import believed, combined, forged, of, unrolled, why


def same(right: str = "x", **other: Any) -> dict[str, Any]:
    """A certificate of x <= x."""
    return forged(right, [combined("x", "<=", right, [])], **other)


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "is_", ["1/(1+exp(1))", "exp(1)/(1+exp(1))", "2 - 1/(1+exp(1))", "1/exp(1)", "exp(1)/exp(2)", "1/(exp(1)-exp(1))"]
)
@pytest.mark.parametrize(("low", "high"), [("1", "1"), ("1/100", "100")])
def test_a_number_that_divides_by_an_exponential_is_refused(is_: str, low: str, high: str) -> None:
    why(same(numbers={"K": {"is": is_, "low": low, "high": high}}))


def test_the_theorem_with_a_smaller_bound_is_refused() -> None:
    whole = of("explicit")
    whole["numbers"]["one"] = {"is": "1/(1+exp(20))", "low": "1", "high": "1"}
    whole["statement"]["right"] = f"({whole['statement']['right']})/(1+exp(20))"
    assert "divides by a sum" in why(whole)


def test_a_number_is_not_renamed_to_a_symbol_of_any_value() -> None:
    numbers = {"K": {"is": "2", "low": "2", "high": "2"}}
    lie = forged("n - 1", [combined("0", "<=", "K - 1", [["1", "low K"], ["1"]])], numbers=numbers)
    lie["statement"] |= {"left": "0", "rename": [{"of": "K", "is": "n"}]}
    assert "no symbol" in why(lie)
    lie["statement"] |= {"right": "K - 1", "rename": []}
    assert checker.checked(lie)


# --- the grammar ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *("floor(x, **y)", "floor(*x)", "floor(x, n)", "floor()", "floor(floor(x))", "floor((1+x)**n)", "floor"),
        *("dot(v, v, **x)", "dot(v)", "dot(v, v, v)", "dot(v, x)", "dot(*v)", "v", "exp(1)", "exp(x)", "power(x, n)"),
        *("0x10*x", "0b1*x", "1_0*x", "010*x", "1j*x", "True*x", "None", "x//n", "x % n", "x @ n", "~x", "+x", "not x"),
        *(
            "x if n else y",
            "x or n",
            "x is n",
            "x in n",
            "await x",
            "lambda x",
            "x, n",
            "(x, n)",
            "()",
            "",
            " ",
            "x  + n",
        ),
        *("x**y", "x**(1/2)", "x**-1", "x**(-n)", "x**101", "x**(2*n)", "x**(n+1)", "n**x", "x**n**n"),
        *(
            "f(x)",
            "x(n)",
            "(x)(n)",
            "x\u00b2",
            "\uff58",
            "x\n+ n",
            "x\t+ n",
            "x.real",
            "x[0]",
            "1.5*x",
            "1e3*x",
            "9" * 100,
        ),
    ],
)
def test_what_is_not_of_the_grammar_is_refused(text: str) -> None:
    read = checker.Reader({"x", "y", "n"}, {"v"}, {"n"})
    with pytest.raises(checker.Refused):
        read(text)
    why(same(text))


def test_a_variable_of_the_clients_is_in_no_floor_and_no_exponent() -> None:
    step = {"id": "s", "left": "0", "op": "<=", "right": "floor(n)", "rule": "clients", "trusts": "sums"}
    step |= {"variables": ["q"], "facts": [], "pointwise": "q*floor(q)", "because": {"above": [["q*floor(q)"]]}}
    step |= {"sums": [[[1], "1"]], "floors": []}
    step |= {
        "pointwise": "q + n*floor(q)**2",
        "because": {"above": [["q + n*floor(q)**2"]]},
        "sums": [[[1], "n"], [[0], "n"]],
    }
    assert "is in a floor" in why(forged("n", [step, combined("x", "<=", "n", [], "t")]))


def test_a_recursion_does_not_multiply_by_what_it_bounds() -> None:
    steps = unrolled(additive="x", adds={"above": [["x"]]})
    steps[1] = believed("y", "<=", "(1 + n)*x + x", "step")
    assert "not linear" in why(forged("n*((1 + n)**n - 1)/n", steps))


def test_a_symbol_is_renamed_on_both_sides_and_in_no_condition() -> None:
    whole = forged("z + n", [combined("x", "<=", "x + n", [["n"]])])
    whole["symbols"]["z"] = {"sign": "nonnegative", "whole": False, "is": "z"}
    whole["statement"]["rename"] = [{"of": "x", "is": "z"}]
    assert "ends elsewhere" in why(whole)
    whole["statement"]["left"] = "z"
    assert "written: z for x" in checker.checked(whole).report()
    whole["conditions"] = {"small": {"left": "x", "op": "<=", "right": "1"}}
    whole["statement"]["conditions"] = ["small"]
    assert "stands for something else" in why(whole)


def test_a_symbol_is_renamed_to_none_that_steps_use() -> None:
    large, small = believed("100", "<=", "n", "large"), believed("x", "<=", "1", "small")
    end = combined("x", "<=", "1", [], premises=["small"], multipliers=[{"value": "1", "because": {"above": [["1"]]}}])
    whole = forged("1", [large, small, end])
    whole["statement"] |= {"left": "n", "rename": [{"of": "x", "is": "n"}]}
    assert "n stands for something else" in why(whole)
    whole["symbols"]["z"] = {"sign": "nonnegative", "whole": False, "is": "z"}
    whole["statement"] |= {"left": "z", "rename": [{"of": "x", "is": "z"}]}
    assert checker.checked(whole)
    mean = believed("100", "<=", "n", "mean", rule="average", premises=["large"], means=[], varying=[], still=[])
    for used in ({"varying": ["z"]}, {"right": "n + z - z"}):  # in a step that is not the last
        assert "z stands for something else" in why(whole | {"steps": [large, mean | used, small, end]})


@pytest.mark.parametrize("additive", ["1/(1 + floor(x))", "4/(1 + z)", "1/(1 + floor(z))", "x/(1 + x)", "z"])
@pytest.mark.parametrize("multiplier", ["2", "1 + n"])
def test_the_terms_of_a_recursion_hold_nothing_that_changes(additive: str, multiplier: str) -> None:
    floors = [{"of": v, "least": "0", "because": {"above": [[v]]}} for v in "xz" if f"({v})" in additive]
    right = f"({additive})*(({multiplier})**n - 1)/({multiplier} - 1)"
    end = unrolled(after="z", multiplier=multiplier, additive=additive, right=right, adds={"above": [[additive]]})[-1]
    end |= {"grows": {"above": [[f"{multiplier} - 1"]]}, "floors": floors}
    step = believed("z", "<=", f"({multiplier})*x + {additive}", "step", floors=floors)
    whole = forged(right, [unrolled()[0], step, end])
    whole["symbols"]["z"] = {"sign": "nonnegative", "whole": False, "is": "z"}
    whole["statement"]["floors"] = floors
    assert re.search("not linear|what differs is made of", why(whole))


def test_what_is_replaced_by_its_mean_is_not_the_same_in_every_step() -> None:
    mean = believed("0", "<=", "x + dot(v, w)", "mean", rule="average", premises=["one"], varying=[], still=["v", "w"])
    mean["means"] = [{"of": "dot(v, v)", "is": "x"}]
    whole = forged("x", [believed("0", "<=", "dot(v, v) + dot(v, w)", "one"), mean, combined("x", "<=", "x", [], "t")])
    whole["vectors"]["p"]["w"] = "another vector"
    assert "what differs is made of" in why(whole)


# --- keys and types ---------------------------------------------------------------------------------------------------


def tables(part: Any) -> list[dict[str, Any]]:
    inside = list(part.values()) if isinstance(part, dict) else part if isinstance(part, list) else []
    return [*([part] if isinstance(part, dict) else []), *(t for p in inside for t in tables(p))]


def test_a_key_that_nothing_reads_is_refused_in_every_table() -> None:
    whole = of("explicit")
    for k, table in enumerate(tables(whole)):
        before = dict(table)
        table["unless that"] = "gamma <= 1000"
        assert why(json.loads(json.dumps(whole))), k
        table.clear()
        table |= before


def test_a_reason_that_nothing_reads_is_refused() -> None:
    reason = {"above": [["1"]]}
    start, lie = believed("x", "==", "0", "t"), combined("x", "==", "0", [], premises=["t"])
    end = combined("x", "<=", "x", [], "end")
    for step in (
        lie | {"multipliers": [{"value": "1", "because": reason}]},
        lie | {"multipliers": [{"value": "1"}], "rest": reason},
        combined("x", "<=", "n", [], premises=["t"], multipliers=[{"value": "0", "because": reason}]),
    ):
        assert "not read" in why(forged("x", [start, step, end]))
    assert "no key" in why(forged("x", [combined("x", "<=", "x", [], trusts="what nothing says")]))
    assert "no key" in why(forged("x", [believed("x", "<=", "x", "s", multipliers=[])]))
    unused = {"c": {"left": "x", "op": "<=", "right": "1"}}
    assert "of no step" in why(same(conditions=unused))
    assert "not read" in why(same(assumptions={"smooth": "words"}))


# --- what is printed --------------------------------------------------------------------------------------------------

IMITATION = "proved: 1 steps, every step checked"
TEXTS = [
    "a" + " " * 300 + IMITATION,
    *(f"{'a' * k} verdict: {IMITATION}" for k in range(60, 90)),
    "a" + "\u2800" * 200 + IMITATION,
    "\u3164" * 100 + IMITATION,
    f'a" {IMITATION} "',
    f"\\n{IMITATION}",
    "\uff21" * 100 + f"verdict: {IMITATION}",
    "e" + "\u0301" * 50 + f"verdict: {IMITATION}",
]
UNPRINTED = [
    "\u00a0",
    "\r",
    "\n",
    "\x1b[2K",
    "\x08",
    "\u202e",
    "\u2028",
    "\u2029",
    "\x85",
    "\x0b",
    "\x00",
    "\ud800",
    "\u200b",
    "\ufeff",
]


def shown(whole: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    place = tmp_path / "proof.json"
    place.write_text(json.dumps(whole))
    status = checker.main([str(place)])
    out, err = capsys.readouterr()
    assert not err and out.endswith("\n") and out.isascii()
    return status, re.split(r"\r|\n|\x0b|\x0c|\x85", out[:-1])


@pytest.mark.parametrize("columns", ["40", "80", "300", "x"])
@pytest.mark.parametrize("text", TEXTS)
def test_no_text_imitates_the_verdict(text: str, columns: str, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    whole = forged("x", [believed("x", "<=", "x", text, trusts=text, says=text), combined("x", "<=", "x", [], "t")])
    whole |= {"claim": text, "source": text}
    whole["statement"]["measure"] = whole["symbols"]["x"]["is"] = whole["vectors"]["p"]["v"] = text
    refused = json.loads(json.dumps(whole))
    refused["steps"][0]["premises"] = [text]
    ends = {0: "verdict: proved if what is believed holds: 2 steps, every step checked except 1 believed"}
    for changed, expected in ((whole, 0), (refused, 1)):
        status, lines = shown(changed, tmp_path, capsys)
        assert status == expected and lines[-1] == ends.get(status, "verdict: refused, for the reason above")
        most = 120 if columns == "300" else 80 if columns == "x" else int(columns)
        assert all(
            line.startswith("| ") and len(line) < most + (most == 120) and "  " * 3 not in line for line in lines[:-1]
        )


@pytest.mark.parametrize("text", UNPRINTED)
def test_characters_that_do_not_print_are_refused(text: str, tmp_path, capsys) -> None:
    for whole in (
        same(claim=f"a{text}b"),
        forged("x", [combined("x", "<=", "x", [], f"a{text}b")]),
        same() | {f"k{text}": 1},
    ):
        status, lines = shown(whole, tmp_path, capsys)
        assert status == 1 and lines[-1] == "verdict: refused, for the reason above"


def test_the_author_does_not_write_the_sign_of_a_symbol() -> None:
    whole = same()
    whole["symbols"]["y"] = {"is": "y, sign positive", "whole": False, "sign": "real"}
    assert 'symbol: y: sign real, whole False, is "y, sign positive"' in checker.checked(whole).report()


# --- work -------------------------------------------------------------------------------------------------------------

MANY = [f"a{k}" for k in range(3000)]


@pytest.mark.parametrize(
    "text",
    [
        "(x + n + 1)**60 * (x + y + n)**60 * (1 + x + y)**60",
        "-" * 100000 + "x",
        "x" + "**n" * 50000,
        "+".join(["x"] * 20000),
        "*".join(MANY),
        "1/(" + "+".join(MANY[:350]) + ")",
        "((((x + 1)**100)**100)**100)**100",
        "((((2)**100)**100)**100)**100",
        "((((x)**100)**100)**100)**100",
        "1/(1/(1/(x + n)**100)**100 + 1)**100",
        "(" * 100000,
    ],
)
def test_no_text_takes_more_than_the_work_that_is_allowed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "WORK", 10**6)
    whole = same()
    whole["symbols"] |= {name: {"sign": "positive", "whole": False, "is": name} for name in MANY}
    whole["steps"][0] |= {"left": text, "right": text}
    start = time.process_time()
    why(whole)
    assert time.process_time() - start < 20  # about 2 s; without counts it would take hours


def test_a_file_is_not_read_beyond_its_size(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "LONG", 100)
    assert shown(same(), tmp_path, capsys)[0] == 1
