r"""Tables of results for a paper: rates, step sizes, conditions and assumptions, with citations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf
from typing import Any

from fedbounds.bounds.advice.coverage import about_method, covers
from fedbounds.bounds.asymptotics.rates import Rate, rate
from fedbounds.bounds.audit.ledger import mark
from fedbounds.bounds.display.tables import Shown, Table, tex
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.printing import latex, plain
from fedbounds.bounds.theory.registry import load, paper
from fedbounds.bounds.theory.result import OPERATORS, Form, Result, plain_amsmath
from fedbounds.bounds.theory.symbols import Notation
from fedbounds.bounds.theory.theorem_file import read_theorem_file

_COLUMNS = ("result", "rate", "dominant", "speed-up", "step sizes", "conditions", "assumptions")
_WIDTHS = (0.15, 0.14, 0.1, 0.06, 0.13, 0.16, 0.14)  # of the columns, in line widths
LONG = 8  # rows of a table that fits on a page
_LEGEND = {  # what a reader must know of the marks in a table: the mark, and what it means
    "no rate": ("-- as a rate", "not known, or the result has no number of rounds"),
    "no dominant": ("-- as a dominant term", "not known"),
    "no speed-up": ("-- as a speed-up", "not known, or no dominant term contains the number of participants"),
    "stays": ("plus", "terms that do not fall with the number of rounds or iterations, at fixed constants"),
    "geometric": ("geometric", "falls faster than every power of the number of rounds or iterations"),
    "logs": ("O~", "up to factors of the logarithm of the number of rounds or iterations"),
    "chosen": ("~", "the best power that the conditions allow; all constants but the step sizes are fixed"),
    "several": ("1 of k", "k powers are best; those with the fewest dominant terms, then the larger first step size"),
}
_SIGNS = {"O~": r"$\tilde{O}$", "~": r"$\propto$"}  # in LaTeX


@dataclass(frozen=True)
class RateRow:
    """One form of a result in the table; formulas are LaTeX without dollars."""

    key: str
    form: str
    number: str  # of the result in its paper
    cite: str  # the paper's BibTeX key; empty if it has no entry
    measure: str
    rate: str  # empty if it cannot be told
    rate_of: str  # the form whose rate this is: of this one, or of a looser one with the same left-hand side
    stays: tuple[str, ...]  # the terms that do not fall with the number of rounds
    steps: tuple[str, ...]
    conditions: tuple[str, ...]
    assumptions: tuple[str, ...]
    note: str  # why not to rely on it, or why its rate is not told
    title: str = ""  # of the result
    dominant: tuple[str, ...] = ()  # the terms that are largest after many rounds, of those that fall
    speed_up: str = ""  # in the number of participants, as of `Rate`; "" where it cannot be told
    prescribed: bool = False  # whether the result sets the step sizes
    relations: tuple[str, ...] = ()  # the conditions in plain text
    only_if: str = ""  # what else must be known of the class for which the table was made
    counts: str = ""  # what the number in the rate counts, as "T: rounds"
    rate_text: str = ""  # the rate in plain text
    geometric: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # terms that fall so: LaTeX and plain text
    logs: bool = False  # whether the rate is up to logarithms
    choices: int = 1  # of the powers of the step sizes that are best; one of them is shown
    algorithm: str = ""  # its kind, as the theorem file names it

    @property
    def _notes(self) -> str:
        """Another method than FedAvg and SGD that it is about, and why not to rely on it."""
        return "; ".join(filter(None, [about_method(self.algorithm), self.note]))

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks in its cells that a legend explains."""
        found = {
            "no rate": not self.rate,
            "no dominant": not self.dominant,
            "no speed-up": not self.speed_up,
            "stays": bool(self.stays),
            "geometric": bool(self.geometric),
            "logs": self.logs,
            "chosen": bool(self.steps) and not self.prescribed,
            "several": self.choices > 1,
        }
        return tuple(mark for mark, occurs in found.items() if occurs)

    @property
    def cells(self) -> tuple[str, ...]:
        """Its cells in LaTeX."""
        cited = f"~\\cite{{{self.cite}}}" if self.cite else f" ({tex(self.key.partition('/')[0])})"
        named = f"{tex(self.number)}{cited}, {tex(self.form)}" + (f" ({tex(self._notes)})" if self._notes else "")
        told = f"${self.rate}$" if self.rate else "--"
        told += " ($" + self.counts.replace(": ", "$: ") + ")" if self.counts else ""
        told += f" plus {tex(', '.join(self.stays))}" if self.stays else ""
        fast = ", ".join(f"{tex(name)} ${formula}$" for name, (formula, _) in self.geometric.items())
        told += f"; geometric: {fast}" if fast else ""
        told += f" (if {tex(self.only_if)})" if self.only_if else ""
        formulas = [r" \newline ".join(f"${one}$" for one in each) for each in (self.steps, self.conditions)]
        formulas[0] += f" (1 of {self.choices})" if self.choices > 1 else ""
        told = (rf"${self.measure}$: {told}", tex(", ".join(self.dominant)) or "--", self.speed_up or "--")
        return named, *told, *formulas, tex(", ".join(self.assumptions))

    @property
    def lines(self) -> tuple[str, ...]:
        """The row as plain text, a line for each column."""
        stays = f", plus what does not fall: {', '.join(self.stays)}" if self.stays else ""
        counts = f" ({self.counts})" if self.counts else ""
        rows = {
            "rate": (self.rate_text or "not known") + counts + stays,
            "geometric": ", ".join(f"{name} {text}" for name, (_, text) in self.geometric.items()),
            "dominant": ", ".join(self.dominant),
            "speed-up": f"{self.speed_up} in the number of participants" if self.speed_up else "",
            "steps": "prescribed"
            if self.prescribed
            else ", ".join(map(plain_rate, self.steps)) + (f" (1 of {self.choices})" if self.choices > 1 else ""),
            "if": "; ".join(self.relations),
            "assumes": ", ".join(self.assumptions),
            "covered": f"if {self.only_if}" if self.only_if else "",
        }
        note = f" ({self._notes})" if self._notes else ""
        head = f"{self.key} [{self.form}]{note}   {self.title}"
        return (head, *(f"  {name:<9} {text}" for name, text in rows.items() if text))


@dataclass(frozen=True)
class RateTable(Shown):
    """Rates of results, with their step sizes, conditions and assumptions."""

    rows: tuple[RateRow, ...]
    bibtex: str  # the entries of the papers

    @property
    def legend(self) -> tuple[str, ...]:
        """What the marks in the cells mean, of those that occur."""
        return tuple(f"{sign}: {meaning}" for sign, meaning in self._legend())

    def _legend(self) -> list[tuple[str, str]]:
        marks = {mark for row in self.rows for mark in row.marks}
        return [said for mark, said in _LEGEND.items() if mark in marks]

    @property
    def latex(self) -> str:
        """The table as LaTeX; it needs amsmath and booktabs, and longtable if it has more than 8 rows."""
        columns = "".join(rf"p{{{width}\linewidth}}" for width in _WIDTHS)
        head = " & ".join(name.capitalize() for name in _COLUMNS)
        body = " \\\\\n\\addlinespace\n".join(" &\n  ".join(row.cells) for row in self.rows)
        long = len(self.rows) > LONG
        kind, packages = ("longtable", "amsmath,booktabs,longtable") if long else ("tabular", "amsmath,booktabs")
        lines = [
            rf"% \usepackage{{{packages}}}",
            rf"\begin{{{kind}}}{{@{{}}{columns}@{{}}}}",
            r"\toprule",
            head + r" \\",
            r"\midrule",
            *([r"\endhead"] if long else []),
            body + r" \\",
            r"\bottomrule",
            rf"\end{{{kind}}}",
        ]
        if said := "; ".join(f"{_SIGNS.get(sign, sign)}: {tex(meaning)}" for sign, meaning in self._legend()):
            lines += [r"\par\smallskip", rf"{{\footnotesize {said}.\par}}"]
        return plain_amsmath("\n".join(lines))

    def tables(self) -> tuple[Table, ...]:
        """The rows; rates, step sizes and conditions are formulas."""
        rows = [
            (
                ", ".join(filter(None, [f"{r.key} [{r.form}]", about_method(r.algorithm)])),
                r.rate,
                r.counts,
                ", ".join(r.dominant),
                r.speed_up or "--",
                ", ".join(r.steps),
                r", \; ".join(r.conditions),
                ", ".join(r.assumptions),
            )
            for r in self.rows
        ]
        columns = ("result", "rate", "counts", *_COLUMNS[2:])
        return (Table("", columns, rows, ("rate", "step sizes", "conditions")),)

    def __str__(self) -> str:
        """One block for each result, and the legend, in plain text."""
        shown = [text for text in self.legend if not text.startswith("--")]  # a line without content is left out
        return "\n\n".join(["\n".join(block) for block in (*(row.lines for row in self.rows), shown) if block])

    def to_dict(self) -> dict[str, Any]:
        """The table as a document."""
        return {
            "rows": [vars(row) for row in self.rows],
            "legend": list(self.legend),
            "latex": self.latex,
            "bibtex": self.bibtex,
        }


def rate_table(keys: Sequence[tuple[str, str | None]]) -> RateTable:
    """The rates of results; the form is the default one if it is None.

    The rate is that at the step sizes that a form prescribes, else at the best powers of the number of rounds that its
    conditions admit. Where the order of a form cannot be told, it is that of a looser form of the same result.

    Raises:
        FedboundsError: no keys, an unknown one, or one that stands twice.

    Example:
        >>> table = rate_table([("arbitrary-participation/theorem-3.1", "explicit")])
        >>> table.rows[0].rate, table.rows[0].stays, table.rows[0].steps
        ('O(T^{-1/2})', ('window divergence',), ('\\\\gamma \\\\propto T^{-1/2}', '\\\\eta \\\\propto 1'))
    """
    if not keys:
        raise FedboundsError("the table has no KEY; name at least one result, e.g. arbitrary-participation/theorem-3.1")
    loaded = [(load(key), name) for key, name in keys]
    chosen = [(result, result.form(name)) for result, name in loaded]
    rows = tuple(_row(result, form) for result, form in chosen)
    names = [f"{row.key}:{row.form}" for row in rows]
    if twice := [name for name in names if names.count(name) > 1]:
        raise FedboundsError(f"{twice[0]} stands twice; name each result and form once")
    entries = dict.fromkeys(_bibtex(result) for result, _ in chosen)
    return RateTable(rows, "\n\n".join(filter(None, entries)) + "\n")


def _row(result: Result, form: Form) -> RateRow:
    found, of, why = _known_rate(result, form)
    notation = result.notation
    order = r"\Omega" if (form.measure or result.measure).lower else "O"
    told, text = ("", "") if found is None else _rate_text(found, notation, order)
    counts = "" if found is None else notation[found.rounds.name].concept
    steps = tuple(f"{notation[name].latex} = {latex(value, notation)}" for name, value in form.prescribes.items())
    chosen = ()
    if found is not None and not steps:
        steps = chosen = tuple(
            f"{notation[name].latex} \\propto {_power(notation[found.rounds.name].latex, power)}"
            + (rf" \log {notation[found.rounds.name].latex}" if name in found.logs else "")
            for name, power in found.steps.items()
        )
    return RateRow(
        result.key,
        form.name,
        result.source.number,
        _cite_key(_bibtex(result)),
        (form.measure or result.measure).latex,
        told,
        of,
        () if found is None else tuple(_staying(form, name, found.rounds.name) for name in found.stays),
        steps,
        tuple(
            f"{latex(c.left, notation)} {OPERATORS.get(c.op, c.op)} {latex(c.right, notation)}" for c in form.hypotheses
        ),
        tuple(a.name for a in form.assumptions if not a.name.startswith("setting")),
        "; ".join(filter(None, [mark(result, form), why])),
        result.title,
        () if found is None else found.dominant,
        "" if found is None else found.speed_up,
        bool(form.prescribes),
        tuple(c.words(notation) for c in form.hypotheses),
        counts="" if found is None else f"{notation[found.rounds.name].latex}: {counts}",
        rate_text=text,
        geometric={}
        if found is None or found.power == inf
        else {name: (latex(each, notation), plain(each)) for name, each in found.geometric.items()},
        logs=found is not None and bool(found.logs),
        choices=1 if found is None or steps != chosen else found.choices,
        algorithm=result.algorithm,
    )


def _rate_text(found: Rate, notation: Notation, order: str) -> tuple[str, str]:
    """A rate in LaTeX and in plain text; a geometric one as it stands in the form."""
    if isinstance(found.power, Fraction):
        wide = rf"\tilde{{{order}}}" if found.logs else order
        told = f"{wide}({_power(notation[found.rounds.name].latex, -found.power)})"
        return told, plain_rate(told)
    factors = [*dict.fromkeys(found.geometric.values())]
    typeset = " + ".join(latex(each, notation) for each in factors)
    return f"{order}({typeset})", f"{plain_rate(order)}({' + '.join(map(plain, factors))})"


def _known_rate(result: Result, form: Form) -> tuple[Rate | None, str, str]:
    """The rate of a form, or of the first other one that bounds the same and is not refuted."""
    others = [f for f in result.forms if f is not form and f.measure == form.measure and not f.refuted_by]
    others.sort(key=lambda f: f.order_only)
    why = ""
    for one in (form, *others):
        try:
            return rate(result, one), one.name, "" if one is form else f"rate of {one.name}"
        except FedboundsError as error:
            why = why or str(error)
    return None, "", "no rate" if why else ""


def plain_rate(text: str) -> str:
    r"""A rate in plain text.

    Example:
        >>> plain_rate(r"O(T^{-1/2})"), plain_rate(r"\\gamma \\propto T^{-1/4}")
        ('O(T^(-1/2))', 'gamma ~ T^(-1/4)')
    """
    short = re.sub(r"\\tilde\{(.*?)\}", r"\1~", text)
    short = short.replace(r"\propto", "~").replace(r"\Omega", "Omega").replace("\\", "")
    return re.sub(r"\^\{([^}]*)\}", lambda found: f"^({found[1]})", short)


def table_of_class(setting: str) -> RateTable:
    """The rates of the theorems about the objective that cover a setting, as `covers` orders them.

    Raises:
        FedboundsError: a phrase that is not known, or no theorem covers the setting.
    """
    found = covers(setting)
    rows = [row for row in found.results if row.answer != "not covered" and row.of_objective and row.kind != "lemma"]
    if not rows:
        raise FedboundsError(f"no theorem covers {found.setting.text}; fedbounds covers lists the assumptions")
    rows.sort(key=lambda row: row.place)
    table = rate_table([(row.key, row.form) for row in rows])
    kept = (replace(row, only_if=covered.open_axes) for row, covered in zip(table.rows, rows, strict=True))
    return replace(table, rows=tuple(kept))


def _power(symbol: str, power: Fraction) -> str:
    return "1" if not power else symbol if power == 1 else f"{symbol}^{{{power}}}"


def _staying(form: Form, name: str, rounds: str) -> str:
    """A term that does not fall at fixed constants, with those of them that the number of rounds determines."""
    used = {str(s) for term in form.terms if term.name == name for s in term.expression.free_symbols}
    moving = sorted({rule.name for rule in form.derived if rule.name in used and rounds in rule.inputs})
    return f"{name} (at fixed {', '.join(moving)}, which may fall too)" if moving else name


def _bibtex(result: Result) -> str:
    return read_theorem_file(result.file).bibtex if result.file else paper(result.paper).bibtex


def _cite_key(bibtex: str) -> str:
    found = re.match(r"\s*@\w+\{([^,\s]+),", bibtex)
    return found[1] if found else ""
