"""Random changes of certificates: each kind returns a changed copy, or nothing where it finds nothing to change."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

Certificate = dict[str, Any]
Random = random.Random
Place = tuple[Any, Any]
EXPRESSIONS = {"left", "right", "value", "pointwise", "now", "after", "multiplier", "additive", "steps", "constant"}
EXPRESSIONS |= {"weight", "is", "a", "low", "high", "least", "of"}
REASONS = ("because", "rest", "grows", "adds", "slope")


def places(part: Any, within: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """Every place of a JSON document: the keys that lead there, the table or list, and the key in it."""
    for key in list(part) if isinstance(part, dict) else range(len(part)):
        yield (*within, key), part, key
        if isinstance(part[key], dict | list):
            yield from places(part[key], (*within, key))


def expressions(whole: Certificate) -> list[Place]:
    """Places of expressions: sides, multipliers, reasons, means, sums and numbers."""
    found: list[Place] = []
    for way, table, key in places(whole):
        text = isinstance(table[key], str)
        if not text or way[0] in ("claim", "source", "format", "vectors", "assumptions"):
            continue
        named = isinstance(key, str) and key in EXPRESSIONS and not (way[0] == "symbols" and key == "is")
        factor = len(way) > 2 and key == 0 and way[-3] in ("above", "below")
        if named or factor or (key == 1 and len(way) > 2 and way[-3] == "sums") or "of" in way[:-1]:
            found.append((table, key))
    return found


def _text(whole: Certificate, pick: Random, change: Callable[[str, Random], str | None]) -> bool:
    """Change one expression; half of the time one of a conclusion, a condition or the statement."""
    ends = [*whole["steps"], *whole["conditions"].values(), whole["statement"]]
    sides: list[Place] = [(table, side) for table in ends for side in ("left", "right")]
    listed = sides if pick.random() < 0.5 else expressions(whole)
    for table, key in pick.sample(listed, min(12, len(listed))):
        new = change(table[key], pick)
        if new is not None and new != table[key]:
            table[key] = new
            return True
    return False


def _replace(pattern: str, new: Callable[[re.Match[str], Random], str]) -> Callable[[str, Random], str | None]:
    def change(text: str, pick: Random) -> str | None:
        found = list(re.finditer(pattern, text))
        if not found:
            return None
        m = pick.choice(found)
        return text[: m.start()] + new(m, pick) + text[m.end() :]

    return change


def _number(m: re.Match[str], pick: Random) -> str:
    k = int(m[0])
    return str(pick.choice([k + 1, max(k - 1, 0), 2 * k, 10 * k, k // 2, 0, 1, k * 10**9]))


NUMBER = r"(?<![A-Za-z_0-9])[0-9]+(?![A-Za-z_0-9])"
ATOM = r"(?:[A-Za-z_]\w*(?:\([^()]*\))?|\d+|\([^()]*\))(?:\*\*(?:\w+|\([^()]*\)))?"
TEXTS: dict[str, Callable[[str, Random], str | None]] = {
    "a number": _replace(NUMBER, _number),
    "an exponent": _replace(r"(?<=\*\*)[0-9]+", lambda m, p: str(p.choice([0, 1, int(m[0]) + 1, int(m[0]) + 2, 100]))),
    "an operator": _replace(r"\*\*| \+ |-|\*|/", lambda m, p: p.choice([" + ", "-", "*", "/", "**", "//", "%"])),
    "a denominator dropped": _replace(rf"/{ATOM}", lambda m, p: ""),
    "a factor dropped": _replace(rf"\*{ATOM}(?!\*\*)", lambda m, p: ""),
    "a term dropped": _replace(rf" \+ {ATOM}(?:[*/]{ATOM})*", lambda m, p: ""),
    "terms exchanged": _replace(rf"({ATOM}) \+ ({ATOM})", lambda m, p: f"{m[2]} + {m[1]}"),
    "a sign": _replace(ATOM, lambda m, p: f"(-{m[0]})"),
    "scaled": lambda text, p: (
        f"({text})*{p.choice(['2', '(1/2)', '(99/100)', '(-1)', '0', '(1/500000000)', '10**30'])}"
    ),
    "added": lambda text, p: f"({text}) {p.choice('+-')} {p.choice(['1', '(1/10**12)', '1/0', 'L', 'gamma'])}",
    "a call": _replace(
        r"(\w+)\(([^()]*)\)",
        lambda m, p: p.choice(
            [
                *(f"{m[1]}({m[2]}, **L)", f"{m[1]}(*{m[2]})", m[2], f"floor({m[0]})", f"exp({m[2]})", f"abs({m[2]})"),
                *(f"{m[1]}({m[2].split(',')[0]})", f"dot({m[2].split(',')[0]}, {m[2].split(',')[0]})"),
            ]
        ),
    ),
    "a function": _replace(
        ATOM, lambda m, p: f"{p.choice(['floor', 'exp', 'dot', 'power', 'max', 'floor(x, '])}({m[0]})"
    ),
    "padding": lambda text, p: p.choice(
        [text + " " * 3, text.replace("*", "  *", 1), f" {text}", f"{text}#", f"{text}\n"]
    ),
    "a power of itself": lambda text, p: f"({text})**{p.choice([0, 1, 2, 60, 1000])}",
    "an exponential": lambda text, p: f"({text})/({p.choice(['1', '2'])}+exp({p.choice(['1', '1/2'])}))",
}


def _symbol(whole: Certificate, pick: Random) -> bool:
    """Another symbol, here or in a whole step."""
    symbols = [*whole["symbols"], *whole["numbers"]]
    if len(symbols) < 2:
        return False
    old, new = pick.sample(symbols, 2)
    if pick.random() < 0.5:
        return _text(whole, pick, _replace(rf"\b{old}\b", lambda m, p: new))
    step = pick.choice(whole["steps"])
    before = copy.deepcopy(step)
    for _, table, key in list(places(step)):
        if isinstance(table[key], str) and key not in ("id", "says", "rule", "trusts"):
            table[key] = re.sub(rf"\b{old}\b", new, table[key])
    return step != before


def _lists(whole: Certificate, pick: Random) -> bool:
    """An entry of a list dropped, doubled, exchanged, or put in from another list of this name."""
    listed = [(way, t, k) for way, t, k in places(whole) if isinstance(t[k], list) and t[k]]
    way, table, key = pick.choice(listed)
    entries = table[key]
    j = pick.randrange(len(entries))
    match pick.choice(["drop", "drop", "double", "exchange", "other"]):
        case "drop":
            del entries[j]
        case "double":
            entries.insert(j, copy.deepcopy(entries[j]))
        case "exchange":
            i = pick.randrange(len(entries))
            entries[i], entries[j] = entries[j], entries[i]
        case _:
            others = [t[k] for w, t, k in listed if w[-1] == way[-1]]
            entries[j] = copy.deepcopy(pick.choice(pick.choice(others)))
    return True


def _keys(whole: Certificate, pick: Random) -> bool:
    """A key that nothing reads."""
    tables = [whole, *(t[k] for _, t, k in places(whole) if isinstance(t[k], dict))]
    key = pick.choice(
        ["at", "note", "except", "op", "because", "below", "slope", "where", "random", "low", "rest", "premises"]
    )
    table = pick.choice(tables)
    if key in table:
        return False
    table[key] = pick.choice(["start", "1", "x", [], {}, [["1"]], 1, True, None, {"above": [["1"]]}])
    return True


def _values(whole: Certificate, pick: Random) -> bool:
    """A value of another type or from another place."""
    every = list(places(whole))
    _, table, key = pick.choice(every)
    _, other, there = pick.choice(every)
    table[key] = pick.choice([None, 1, -1.5, True, [], {}, "", "1", "0", copy.deepcopy(other[there])])
    return True


def _declared(whole: Certificate, pick: Random) -> bool:
    """The sign or the range of a symbol."""
    symbol = pick.choice([*whole["symbols"].values()])
    key = pick.choice(["sign", "whole", "low", "high"])
    new: Any = {
        "sign": ["real", "nonnegative", "positive"],
        "whole": [True, False],
        "low": ["0", "1", "-1", "2", "1/2"],
    }
    symbol[key] = pick.choice(new.get(key, ["1", "2", "0", "1000"]))
    return True


def _undeclared(whole: Certificate, pick: Random) -> bool:
    """The range of a symbol dropped."""
    ranged = [(w, e) for w in whole["symbols"].values() for e in ("low", "high") if e in w]
    if ranged:
        symbol, end = pick.choice(ranged)
        del symbol[end]
    return bool(ranged)


def _numbers(whole: Certificate, pick: Random) -> bool:
    """A named number, or its enclosure."""
    if not whole["numbers"] or pick.random() < 0.5:
        whole["numbers"]["K"] = {"is": "exp(1)", "low": "2", "high": "3"}
    what = pick.choice([*whole["numbers"].values()])
    key = pick.choice(["is", "is", "low", "high"])
    if key == "is":
        what["is"] = pick.choice(
            ["1/(1+exp(1))", "exp(1)/(1+exp(1))", "exp(1)*exp(1)", "exp(1)-exp(1)", "exp(3/2)/2", "exp(-1)"]
        )
        what |= pick.choice([{}, *[{"low": "1", "high": "1"}] * 3, {"low": "1/1000", "high": "1000"}])
    else:
        what[key] = TEXTS["a number"](what[key], pick) or "1"
    return True


def _relation(whole: Certificate, pick: Random) -> bool:
    """The sides exchanged, or another relation."""
    table = pick.choice([*whole["steps"], *whole["conditions"].values(), whole["statement"]])
    if pick.random() < 0.5:
        table["left"], table["right"] = table["right"], table["left"]
    else:
        table["op"] = pick.choice(["<=", "==", "<", ">=", "!="])
    return True


def _rule(whole: Certificate, pick: Random) -> bool:
    """Another rule, with the keys of a step that has it."""
    step, other = (pick.choice(whole["steps"]) for _ in range(2))
    kept = {k: step[k] for k in ("id", "left", "op", "right", "premises", "conditions") if k in step}
    if step["rule"] == other["rule"]:
        return False
    step |= copy.deepcopy({k: v for k, v in other.items() if k not in kept})
    for key in {*step} - {*other} - {*kept}:
        del step[key]
    return True


def _steps(whole: Certificate, pick: Random) -> bool:
    """The content of one step in the place of another, under its name."""
    step, other = (pick.choice(whole["steps"]) for _ in range(2))
    name = step["id"]
    step.clear()
    step |= copy.deepcopy(other) | {"id": name}
    return step is not other


def _renamed(whole: Certificate, pick: Random) -> bool:
    """Another symbol in the statement for one of the last step."""
    end = whole["statement"]
    held = re.findall(r"dot\([^()]*\)|[A-Za-z_]\w*", f"{end['left']} {end['right']}")
    old = pick.choice([*(held or ["x"]), *whole["symbols"], *whole["numbers"]])
    new = pick.choice([*whole["symbols"], *whole["symbols"], "0", "2", "fresh"])
    if new == "fresh":
        whole["symbols"][new] = {"sign": "nonnegative", "whole": False, "is": "another symbol"}
        whole["symbols"][new] |= whole["symbols"].get(old, {}) if pick.random() < 0.7 else {}
    end["rename"].append({"of": old, "is": new})
    for side in ("left", "right"):
        if pick.random() < 0.9:
            end[side] = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", new, end[side])
    return True


def _recursion(whole: Certificate, pick: Random) -> bool:
    """A believed recursion whose terms may hold what changes in it, also inside of a function; its bound at the end."""
    steps = [k for k, s in enumerate(whole["steps"]) if s["rule"] == "unroll"]
    if not steps:
        return False
    last = whole["steps"][pick.choice(steps)]
    start, step = last["premises"][:2]
    for name in ("now", "after"):
        whole["symbols"][name] = {"sign": "nonnegative", "whole": False, "is": name}
    n = last["steps"]
    held = pick.choice(["now", "after", "floor(now)", "floor(after)", f"now**{n}", "L", "floor(L)", "2"])
    fixed = pick.choice(["L", "gamma", "L*gamma", "1"])
    terms = [f"1/(1 + {held})", f"gamma*{held}", f"L + {held}/(1 + {held})", f"3/(2 + {held})"]
    b = pick.choice(terms) if pick.random() < 0.8 else fixed
    m = f"1 + {pick.choice(terms) if pick.random() < 0.2 else fixed}"
    floors = [{"of": x, "least": "0", "because": {"above": [[x]]}} for x in ("now", "after", "L") if f"({x})" in held]
    last |= {"now": "now", "after": "after", "multiplier": m, "additive": b, "left": "now", "op": "<="}
    last |= {"right": f"({b})*(({m})**{n} - 1)/({m} - 1)", "premises": [start, step], "conditions": []}
    last |= {"grows": {"above": [[f"{m} - 1"]]}, "adds": {"above": [[b]]}, "floors": floors}
    said: Certificate = {"rule": "axiom", "trusts": "words", "floors": floors}
    whole["steps"] = [
        said | {"id": start, "left": "now", "op": "==", "right": "0", "at": "start"},
        said | {"id": step, "left": "after", "op": "<=", "right": f"({m})*now + {b}"},
        last,
    ]
    whole["conditions"], whole["assumptions"], end = {}, {}, whole["statement"]
    end |= {"left": "now", "op": "<=", "right": last["right"], "rename": [], "follows": {}, "floors": floors}
    end |= {"conditions": [], "assumptions": []}
    return True


def _consistent(whole: Certificate, pick: Random) -> bool:
    """A looser or a tighter conclusion whose reason is changed with it."""
    steps = [s for s in whole["steps"] if s["rule"] == "combination" and "above" in s.get("rest", {})]
    if not steps:
        return False
    step = pick.choice(steps)
    extra = pick.choice(
        ["1", "-1", "L", "gamma**2", "-gamma", "L/gamma", "1/(1+exp(1))", "floor(L)", "(I - P)**2", "y"]
    )
    step["right"] = f"({step['right']}) + {extra}"
    below = step["rest"].get("below", [["1"]])
    step["rest"]["above"] += [[f"({extra})*({text})", *names] for text, *names in below]
    return True


def _end(whole: Certificate, pick: Random) -> bool:
    """The certificate cut after a step, which becomes the statement, or with the statement of another step."""
    k = pick.randrange(len(whole["steps"]))
    last = whole["steps"][k]
    whole["statement"] |= {"left": last["left"], "right": last["right"], "op": last["op"], "rename": []}
    if pick.random() < 0.8:
        whole["steps"] = whole["steps"][: k + 1]
        used = {c for s in whole["steps"] for c in s.get("conditions", [])}
        end = whole["statement"]
        end["follows"] = {c: why for c, why in end["follows"].items() if c in used}
        whole["conditions"] = {c: r for c, r in whole["conditions"].items() if c in used or c in end["conditions"]}
    return True


def _inserted(whole: Certificate, pick: Random) -> bool:
    """A false step put in before another, which rests on nothing."""
    symbols = [*whole["symbols"], *whole["numbers"]]
    a, b = (pick.choice([*symbols, "1", "2"]) for _ in range(2))
    left = pick.choice([f"{a}/{b}", f"{a}*{b}", f"floor({a})", f"({a} - {b})/({a} - {b})", f"{a}**I", f"{a}**0", "0"])
    right = pick.choice(["0", "1", left, f"{left} + {a}", f"{left} - {a}", f"({a} - {b})**2", f"{a}/{b}"])
    step: Certificate = {
        "id": "forged",
        "left": left,
        "op": pick.choice(["<=", "=="]),
        "right": right,
        "rule": "combination",
    }
    step |= {"multipliers": [], "positive": pick.choice([[], [{"is": b, "because": {"above": [[b]]}}]])}
    if step["op"] == "<=":
        step["rest"] = {
            "above": pick.choice([[], [[a]], [[f"({right}) - ({left})"]], [["1", f"low {a}"]], [["1", f"high {a}"]]])
        }
    whole["steps"].insert(pick.randrange(len(whole["steps"])), step)
    return True


KINDS: dict[str, Callable[[Certificate, Random], bool]] = {
    **{name: lambda whole, pick, change=change: _text(whole, pick, change) for name, change in TEXTS.items()},
    "another symbol": _symbol,
    "an entry of a list": _lists,
    "a key": _keys,
    "a value": _values,
    "the range of a symbol": _declared,
    "the range of a symbol dropped": _undeclared,
    "a named number": _numbers,
    "another relation": _relation,
    "another rule": _rule,
    "another step": _steps,
    "another name": _renamed,
    "a recursion": _recursion,
    "a conclusion with its reason": _consistent,
    "another end": _end,
    "a step put in": _inserted,
}


def forgeries(
    whole: Certificate, seed: int, count: int, kinds: tuple[str, ...] = tuple(KINDS)
) -> Iterator[tuple[str, Certificate]]:
    """So many changed certificates, the kinds in turn; one in four is changed twice."""
    pick, names, k = Random(seed), list(kinds), 0
    while count:
        kind = names[k % len(names)]
        k += 1
        forged = copy.deepcopy(whole)
        if not KINDS[kind](forged, pick):
            continue
        if pick.random() < 0.25:
            other = pick.choice(names)
            kind += f", and {other}"
            try:
                KINDS[other](forged, pick)
            except (LookupError, TypeError, AttributeError, ValueError):  # the first change left nothing to change
                continue
        count -= 1
        yield kind, forged
