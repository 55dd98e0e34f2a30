"""What is printed is defined, reads like the paper, and is read back by our own grammar as the same expression."""

import re

import numpy as np
import pytest
import sympy as sp

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.numpy_code import compile_form
from fedbounds.bounds.theory.client_reductions import OverClients, SumOverClients
from fedbounds.bounds.theory.named_numbers import NamedNumber
from fedbounds.bounds.theory.notation_symbols import PlainSymbol
from fedbounds.bounds.theory.parsing import read_expression
from fedbounds.bounds.theory.printing import as_printed, name_shared_parts, plain
from fedbounds.bounds.theory.printing import latex as in_latex
from fedbounds.bounds.theory.registry import load, papers
from fedbounds.bounds.theory.symbols import Quantity
from fedbounds.cli.catalog import as_document, as_text, describe

FORMS = [(result, form) for paper in papers() for result in paper.results for form in result.forms]
MINIMAX = load("fed-norm-sgda/theorem-1")


def apart(first=lambda form: 0):
    """Every expression of a notation once, with a form that has it, though many forms have it."""
    seen = set()
    for result, form in FORMS:
        for expression in form.expressions[first(form) :]:
            if (key := (id(result.notation), expression)) not in seen:
                seen.add(key)
                yield result, form, expression


def test_every_printed_bound_is_read_back_as_it_is():
    for result, form in FORMS:
        bound = sp.Add(*(term.expression for term in form.terms))
        assert read_expression(as_text(form, result.notation), result) == bound, f"{result.key} [{form.name}]"


def test_every_printed_condition_and_step_size_is_read_back_as_it_is():
    for result, form, expression in apart(lambda form: len(form.terms)):
        numbers = name_shared_parts([expression], result.notation).numbers
        lines = [*(f"{name} = {plain(exact)}" for name, exact in numbers.items()), plain(expression)]
        assert read_expression("\n".join(lines), result) == expression, f"{result.key} [{form.name}]"


def test_another_printed_factor_is_another_expression():
    text = as_text(MINIMAX.form("printed"), MINIMAX.notation)
    assert read_expression(text.replace("kappa**2", "kappa**3"), MINIMAX) != read_expression(text, MINIMAX)


def test_every_name_is_defined_wherever_it_is_printed():
    for result, form in FORMS:
        short = name_shared_parts(form.expressions, result.notation)
        assert not {name for name, _ in short.definitions()} & set(result.notation), "a name and a symbol"
        used = {n.name for e in form.expressions for n in e.atoms(NamedNumber)}
        if used:
            shown, display, text = (
                describe(result, [form]),
                result.latex_parts(form).lines,
                as_text(form, result.notation),
            )
            assert all(f"where {name} = " in shown for name in used)
            assert all(f"{sp.latex(sp.Symbol(name))} = " in display for name in used)
            in_bound = {n.name for term in form.terms for n in term.expression.atoms(NamedNumber)}
            assert all(re.search(rf"^{name} = ", text, re.MULTILINE) for name in in_bound)
        known = set(result.notation)
        for name, meaning in short.definitions():
            assert {str(s) for s in meaning.free_symbols} <= known
            known.add(name)
        assert {str(s) for e in short.expressions for s in e.free_symbols} <= known


def test_a_named_number_is_reported_exactly_and_about():
    theorem = load("fedau/theorem-2")
    assert "where kappa = exp(1) - 2, about 0.718282" in describe(theorem, [theorem.form("sharp")])
    assert r"\kappa = e - 2 \approx 0.718282" in theorem.latex_parts(theorem.form("sharp")).lines


def test_what_is_subtracted_comes_last():
    n, P, x = sp.symbols("n P x", positive=True)
    assert plain(1 - (n - P) / sp.Max(1, n - 1)) == "1 - (n - P)/max(1, n - 1)"
    assert plain(-x - 1) == "-x - 1" and plain(SumOverClients(x) - n) == "sum_clients(x) - n"
    for result, form, expression in apart():
        assert not re.search(r"\(-\w+ \+ ", plain(expression)), f"{result.key} [{form.name}]"


def powers_of(product):
    return dict(factor.as_base_exp() for factor in sp.Mul.make_args(product))


def test_what_is_shown_has_no_guard_and_no_client_count_that_cancels():
    for result, form, expression in apart():
        clients = result.notation.resolve("clients")
        if clients is None:
            continue
        n = clients.symbol
        shown = as_printed(expression, result.notation).expression
        assert not shown.has(sp.Max(1, n - 1)), f"{result.key} [{form.name}]: {plain(shown)}"
        for product in shown.atoms(sp.Mul):
            powers = powers_of(product)
            inside = [part for f in powers if isinstance(f, sp.Add | sp.Max) for part in f.args]
            cancels = powers.get(n, 0) > 0 and any(powers_of(part).get(n, 0) < 0 for part in inside)
            assert not cancels, f"{result.key} [{form.name}]: {plain(product)}"


@pytest.mark.parametrize("key", ["theorem-1", "theorem-2", "theorem-4", "lemma-b.2", "lemma-b.5", "lemma-c.3"])
def test_no_text_that_is_shown_has_a_guard(key):
    result = load(f"fed-norm-sgda/{key}")
    for form in result.forms:
        document = as_document(result, [form])["forms"][0]
        for shown in (describe(result, [form]), str(document), document["latex"]):
            assert "max(1, n - 1)" not in shown and r"\left(1, n - 1\right)" not in shown, form.name
        assert "max(1, n - 1)" in as_text(form, result.notation) + "".join(c.text for c in form.conditions)


def test_what_is_shown_is_what_is_evaluated():
    """Also for one client, where each quotient that is 0/0 is replaced by the reading that is shown beside it."""
    rng = np.random.default_rng(3)
    changed = 0
    for result, _, expression in apart():
        clients = result.notation.resolve("clients")
        printed = as_printed(expression, result.notation)
        if clients is None or printed.expression == expression:
            continue
        changed += 1
        symbols = sorted(expression.free_symbols - {clients.symbol} | expression.atoms(OverClients), key=str)
        for n in (3, 1):
            values = {s: sp.Rational(int(rng.integers(1, n + 1)), 1 if s.is_integer else 8) for s in symbols}
            values[clients.symbol] = sp.Integer(n)
            read = {}
            if n == 1:
                read = {sp.numer(quotient): reading.xreplace(values) for quotient, reading in printed.alone}
                read[clients.symbol - 1] = sp.S.One
            # all at once: sympy takes long to compare the members of a maximum that holds symbols
            ours, shown = expression.xreplace(values), printed.expression.xreplace(values | read)
            assert float(ours) == pytest.approx(float(shown)), result.key
    assert changed > 80


def test_a_quotient_that_is_0_by_0_for_one_client_is_shown_with_its_reading():
    lemma = load("fed-norm-sgda/lemma-b.2")
    form = lemma.form("printed")
    shown = describe(lemma, [form])
    assert "mean direction  direction*n*(P - 1)/(P*(n - 1))" in shown
    assert "where 0/0 in (P - 1)/(n - 1) is 1\n  where 0/0 in (n - P)/(n - 1) is 0\n" in shown
    display = lemma.latex_parts(form).lines
    assert r"\frac{H_{x,t} n \left(P - 1\right)}{P \left(n - 1\right)}" in display and len(display.splitlines()) == 1
    n, x = MINIMAX.notation.n, sp.Symbol("x", positive=True)
    for kept in (2 - x / sp.Max(1, n), x / sp.Max(1, n - 1), sp.Max(1, x) / n, n * (x + 1)):  # no 0/0, or no guard
        assert as_printed(kept, MINIMAX.notation).expression == kept


def test_a_displayed_theorem_has_the_papers_conditions_and_no_others():
    display = MINIMAX.latex_parts(MINIMAX.form("printed")).lines.splitlines()
    assert len(display) == 1 + 7  # (a), (b), (c), (d), (e) and the two of (f) of Lemma B.5
    assert display[2] == (
        r"\frac{\Gamma_y L_f \beta_G^{2} \kappa \max\left(\frac{B_w \beta_L^{2}}{\tau_{\rm eff}}, "
        r"\frac{E_w \left(n - P\right)}{n - 1}\right)}{P} \le \frac{1}{64}"
    )
    shown = describe(MINIMAX, [MINIMAX.form("printed")])
    legal = shown.split("  legal constants: ")[1].splitlines()[0]
    assert legal == "; ".join(c.why for c in MINIMAX.form("printed").conditions if c.legal) and legal.count("; ") == 3
    assert "max_clients(max(" not in shown
    for key in ("theorem-4", "lemma-b.6", "corollary-1.1"):
        result = load(f"fed-norm-sgda/{key}")
        form = result.form("printed")
        own = [c for c in form.conditions if not c.legal]
        assert len(own) < len(form.conditions)
        conditions = as_document(result, [form])["forms"][0]["conditions"]
        assert [c["legal"] for c in conditions] == [c.legal for c in form.conditions]
        named = len(
            name_shared_parts(
                [as_printed(e, result.notation).expression for e in form.expressions], result.notation
            ).parts
        )
        assert len(result.latex_parts(form).lines.splitlines()) == 1 + len(own) + named


def test_nothing_cancels_in_the_noise_of_full_synchronization():
    for result, form in FORMS:
        for term in form.terms:
            if result.paper == "fed-norm-sgda" and term.name == "full synchronization":
                assert MINIMAX.notation.n not in term.expression.free_symbols, f"{result.key} [{form.name}]"
    printed = load("fed-norm-sgda/theorem-4").form("printed")
    noise = next(plain(t.expression) for t in printed.terms if t.name == "full synchronization")
    assert noise == "Gammay*Lf*(A_w*sigmaL**2 + B_w*betaL**2*sigmaG**2)/(P*taueff)"


@pytest.mark.parametrize("key", ["lemma-b.3", "lemma-b.5", "lemma-c.3"])
def test_the_number_of_clients_is_in_the_noise_of_a_round_by_sampling_alone(key):
    for form in load(f"fed-norm-sgda/{key}").forms:
        noise = next(term.expression for term in form.terms if term.name == "noise")
        n, P = MINIMAX.notation.n, MINIMAX.notation.P
        assert n not in noise.subs(n - P, 0).free_symbols, form.name


def test_sums_over_clients_run_over_the_papers_index():
    shown = MINIMAX.latex_parts(MINIMAX.form()).lines
    assert r"\max_i" in shown and r"\sum_n" not in shown and r"\max_n" not in shown
    rare = load("fedau/theorem-3")
    assert r"\frac1N\sum_n\left(1 - p_n\right)^{2 K}" in rare.latex_parts(rare.form("printed")).lines
    n = MINIMAX.notation
    assert in_latex(SumOverClients(n.w) * n.T, n) == r"T \sum_iw_i"
    assert in_latex(SumOverClients(n.w) * sp.log(n.T), n) in (
        r"\log{\left(T \right)} \sum_iw_i",
        r"\left(\sum_iw_i\right) \log{\left(T \right)}",
    )


def test_a_long_form_names_its_parts():
    rate = load("fed-norm-sgda/theorem-2")
    form = rate.form("repaired")
    whole = sum(len(plain(e)) for e in form.expressions)
    short = name_shared_parts(form.expressions, rate.notation)
    assert sum(len(plain(e)) for e in (*short.expressions, *short.parts.values())) < whole / 3
    assert list(short.parts) == [f"X{k + 1}" for k in range(len(short.parts))]
    theorem = load("arbitrary-participation/theorem-3.1")
    assert name_shared_parts(theorem.form("printed").expressions, theorem.notation).parts == {}


def test_no_symbol_is_misread_as_a_decoration():
    for result, _ in FORMS:
        for q in result.notation.values():
            shown = sp.latex(q.symbol)
            assert not re.search(r"\\left\||mathbf|dot|check|acute|grave|mathring|vec|'", shown), f"{q.name}: {shown}"
    sigma = MINIMAX.notation.sigmaG
    assert sp.latex(sigma**2) == r"\sigma_{G}^{2}" and isinstance(sigma, PlainSymbol)
    assert sp.latex(Quantity("gradnorm", "g", "", "").symbol) == r"\mathrm{gradnorm}"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sympys_own_lambdify_computes_every_form():
    rng = np.random.default_rng(0)
    for result, form in FORMS:
        symbols = sorted(form.symbols, key=str)
        shaped = {s: rng.uniform(0.1, 0.9, (3,) if result.notation[s.name].shape else ()) for s in symbols}
        values = {s: np.ceil(3 * v) if s.is_integer else v for s, v in shaped.items()}
        vectors = frozenset(s.name for s in symbols if result.notation[s.name].shape)
        ours = compile_form(form, vectors).value({s.name: v for s, v in values.items()})
        theirs = sp.lambdify(symbols, sp.Add(*(t.expression for t in form.terms)))(*(values[s] for s in symbols))
        assert np.shape(theirs) == (), f"{result.key} [{form.name}]"
        assert theirs == pytest.approx(float(ours), rel=1e-9, nan_ok=True), f"{result.key} [{form.name}]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no expression"),
        ("Lf*gamm", "unknown symbol 'gamm'"),
        ("Lf = 2\nLf", "does not define a new name"),
        ("K1 2\nLf", "does not define a new name"),
        ("__import__('os')", "unexpected"),
        ("system(Lf)", "unknown function 'system'"),
        ("Lf/0", "division by zero"),
        ("9**9**9", "beyond 64"),
        ("(" * 200 + "Lf" + ")" * 200, "nested deeper"),
    ],
)
def test_a_text_that_is_no_expression_is_refused_in_one_line(text, message):
    with pytest.raises(FedboundsError, match=re.escape(message)) as error:
        read_expression(text, MINIMAX)
    assert len(str(error.value).splitlines()) == 1


def test_a_symbol_that_is_written_as_a_difference_stands_in_brackets():
    theorem = load("fedmrn/theorem-2")
    F, L, T = theorem.notation.F, theorem.notation.L, theorem.notation.T
    brackets = r"\left(F(\mathbf w_0)-F^*\right)"
    assert brackets in in_latex(2 * F * L / T, theorem.notation) and brackets in in_latex(-F, theorem.notation)
    distance = load("fedmrn/theorem-1").notation.Delta1
    assert r"\left(" not in in_latex(distance * L, theorem.notation)
