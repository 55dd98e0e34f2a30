"""Constants that can occur together: whatever a form's set admits has a witness, and what it refuses has none."""

import re
from functools import cache

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.evaluation.program import holds
from fedbounds.bounds.evaluation.resolution import resolve
from fedbounds.bounds.theory.feasible_set import feasible_set
from fedbounds.bounds.theory.registry import PAPERS, paper_module
from tests.bounds.evaluation.feasible_witnesses import AT_LEAST, AT_MOST, CHOSEN, WITNESSES
from tests.command_line import run

COMPUTED = ("fedau/corollary-4[sharp]", "fedau/corollary-4-option-1[sharp]")  # from p, K and T, not from numbers
LOOSE = {  # relations that no known problem meets with equality
    ("fed-norm-sgda/lemma-b.2", 2),
    ("fed-norm-sgda/lemma-b.3", 2),
}
FORMS = {
    f"{result.key}[{form.name}]": (result, form)
    for paper in PAPERS
    for result in paper_module(paper).RESULTS
    for form in result.forms
    if not (form.order_only or form.asymptotic or form.refuted_by)
    and compiled_form(result, form).standing().verdict == "proved"
}
FOLLOWS = ("A_w", "B_w", "C_w", "D", "E_w", "alpha", "nu", "taubar", "chi2", "n", "taueff", "mu")  # from others
DRAWS, MORE = 12, 30
SMALL = {"N": 5, "S": 4, "T": 12, "d": 3, "K": 5, "P": 4, "I": 3}
SPREADS = (0.75, 0.98, 1.02, 1.4)  # around where a relation is met with equality


def drawn(result, form, rng):
    """Constants of a form, legal but not feasible for sure."""
    c = {}
    names = sorted(form.needs)
    if result.paper == "fed-norm-sgda":
        whole = {symbol for symbol, others in (("mu", {"kappa"}), ("n", {"w", "tau"})) if not others & {*names}}
        names = [name for name in names if name not in FOLLOWS or name in whole]
        if form.needs & {"chi2"}:
            names += ["p", "w"]
    if result.key == "fedau/lemma-b.7.1" and "p" in names:
        names = ["T", "p"]  # what else there is follows from them
    clients = int(rng.integers(1, 4))
    for name in dict.fromkeys(names):
        q = result.notation[name]
        shape = (clients,) if q.shape else ()
        if q.domain.integer:
            values = rng.integers(1, SMALL.get(name, 6) + 1, shape).astype(float)
        elif q.domain.high <= 1:
            values = rng.uniform(0.05, 0.999 if q.domain.high_open else 1, shape)
        else:
            values = max(q.domain.low, 0.0) + rng.lognormal(0, 1, shape)
            values = values * rng.choice([-1, 1], shape) if q.domain.low < 0 else values
        if q.domain.contains(0.0) and not q.shape and rng.random() < 0.15:
            values = np.asarray(0.0)
        if q.total:
            values = values / values.sum()
        c[name] = np.asarray(values, dtype=float)
    return adapted(result, form, c, rng)


def adapted(result, form, c, rng):
    """The same, as the form's own conditions have it."""
    if {"mu", "L"} <= c.keys():
        c["mu"] = c["L"] * rng.uniform(0.05, 1)
    if {"K", "N"} <= c.keys():
        c["K"] = np.minimum(c["K"], c["N"])
    if result.key == "fedau/lemma-b.3.3" and rng.random() < 0.4:
        c["N"] = np.asarray(1.0)
    if result.key == "fedmrn/theorem-1" and rng.random() < 0.3:  # one client of several, from their minimizer
        c |= {k: np.asarray(v) for k, v in {"N": 4.0, "K": 1.0, "S": 4.0, "T": 12.0, "Delta1": 0.0}.items()}
    if {"d", "T", "S"} <= c.keys():
        c["T"] = np.minimum(c["T"], 1 + 3 * c["S"])  # three rounds at most
    if "qbar" in c and "N" in c:
        c["N"] = np.asarray(float(len(c["qbar"])))
    if "p" in c and "N" in c:
        c["N"] = np.asarray(float(len(c["p"])))
    if "squares" in c and "n" in form.needs:
        c["n"] = np.asarray(float(len(c["squares"])))
    if "Wmax" in c:
        c["Wmax"] = np.asarray(rng.uniform(0, 1 / 81))
        c["W"] = c["Wmax"] * rng.uniform(0, 1.3)
        for k in {"Q", "Qmean"} & c.keys():
            c[k] = np.asarray(rng.uniform(0.9, 1.5)) if "W" in form.needs else c[k]
        c = {k: v for k, v in c.items() if k in form.needs}
    if {"Wmax", "R", "T"} <= c.keys():  # so many clients that one rare one among them is a small error
        c["R"], c["T"] = (np.asarray(rng.choice(v)) for v in ([rng.uniform(0.05, 0.4), rng.uniform(1, 3)], [3.0, 1e3]))
        rarest, most = 1 - np.exp(-1 / (2 * c["R"])), max(1, min(np.ceil(c["R"] * np.log(c["T"])), c["T"] - 1))
        error = max((1 - rarest) ** 2, (rarest * most - 1) ** 2)
        c["N"] = 1 + np.floor(81 * error * rng.uniform(1, 1.5))
        c["Q"] = (rarest * most**2 + (c["N"] - 1) * min(1, rarest * most**2)) / c["N"] * rng.uniform(0.8, 1.3)
    if result.key == "fedau/appendix-a.3-unequal":
        c["Q"] = (1 / c["p"]).mean() * rng.uniform(1, 2)
    if result.key == "arbitrary-participation/equation-c.16":
        c["decrease"] = c["decrease"] * 0.01
        c["gamma"], c["eta"] = 0.05 * c["gamma"] / c["L"], np.minimum(c["eta"], 2.0)
    if "a1" in c:
        rows = [rng.uniform(0, 2, int(k)) * rng.choice([0, 1, 1], int(k)) + 0.05 for k in c["tau"]]
        near = lambda: np.exp(rng.choice([0, 0, 0.05, 0.5]) * rng.normal(size=len(rows)))  # noqa: E731
        c["a1"] = np.array([row.sum() for row in rows]) * near()
        c["a2"] = np.array([(row**2).sum() for row in rows]) * near()
        c["alast"] = np.array([row[-1] for row in rows])
        c["amax"] = np.array([row.max() for row in rows])
    if result.key in ("fed-norm-sgda/lemma-b.2", "fed-norm-sgda/lemma-b.5") and rng.random() < 0.6:
        c["direction"] = c["gradxsq"] if "gradxsq" in c else c["epsopt"]
        if "noisysq" in c:
            c["noisysq"] = np.asarray((c["w"] ** 2 / c["a1"] ** 2 * c["a2"]).sum() * c["gradxsq"])
    if "P" in c and "w" in c:
        c["P"] = np.minimum(c["P"], len(c["w"]))
    if rng.random() < 0.2 and {"p", "w"} <= c.keys():
        c["p"] = c["w"]
    return c


def sides(view, c):
    """Both sides of every relation, with what follows from these constants; None where they are refused."""
    if {"mu", "L"} <= c.keys() and c["mu"] > c["L"]:
        return None  # by a condition of the forms
    try:
        known = resolve(view, c)
    except FedboundsError:
        return None
    numbers = {name: np.asarray(k.value, dtype=float) for name, k in known.items()}
    with np.errstate(all="ignore"):
        return [(float(left), float(right)) for left, right, _ in view.occurring.sides(numbers)], numbers


def at_the_edge(result, view, c, rng, i):
    """These constants with one changed so that a relation is met with equality, then by some more or less."""
    seen = sides(view, c)
    if seen is None:
        return
    spreads = (1.0,) if (*view.feasible, *view.witnessed)[i].op == "==" else SPREADS
    symbols = [n for n in c if not result.notation[n].domain.integer and not result.notation[n].shape and c[n] != 0]
    rng.shuffle(symbols)
    for symbol in symbols:
        low, high = 1e-3, 1e3
        for _ in range(12):
            factors = np.geomspace(low, high, 17)
            factors = factors[result.notation[symbol].domain.contains(c[symbol] * factors)]
            with np.errstate(all="ignore"):
                left, right, _ = view.occurring.sides({**seen[1], symbol: c[symbol] * factors})[i]
            crossed = np.nonzero(np.diff(np.sign(np.broadcast_to(left - right, factors.shape))))[0]
            if not crossed.size:
                break
            low, high = factors[crossed[0]], factors[crossed[0] + 1]
        if high / low < 1 + 1e-6:
            yield from ({**c, symbol: c[symbol] * high * spread} for spread in spreads)
            return


def met(result, form, numbers, found):
    """Whether what was built has these constants."""
    paper = result.paper
    most, least, chosen = (table.get(paper, "").split() for table in (AT_MOST, AT_LEAST, CHOSEN))
    for name in form.needs:
        if name not in found:
            assert name in chosen, f"{result.key}[{form.name}]: the witness does not have {name}"
            continue
        given, has = numbers[name], np.asarray(found[name], dtype=float)
        if given.shape != has.shape:
            return False
        slack = 2e-6 * np.abs(given) + 1e-8
        if name in most:
            good = has <= given + slack
        elif name in least:
            good = has >= given - slack
        else:
            good = np.abs(has - given) <= slack
        if not good.all():
            return False
    return True


@cache
def tried(name):
    """(sides of all relations, whether a witness was built) at many constants, and which relations were met."""
    result, form = FORMS[name]
    view, rng = compiled_form(result, form), np.random.default_rng(sum(map(ord, name)))
    relations = (*view.feasible, *view.witnessed)
    found, edges = [], set()

    def note(c):
        seen = sides(view, c)
        if seen is not None:
            numbers = seen[1]
            built = WITNESSES[result.paper](f"{result.key.partition('/')[2]}[{form.name}]", numbers)
            found.append((seen[0], met(result, form, numbers, built), c))

    for _ in range((MORE if view.witnessed or len(relations) > 1 else DRAWS) if relations else 6):
        c = drawn(result, form, rng)
        note(c)
        for i in range(len(relations)):
            for changed in at_the_edge(result, view, c, rng, i):
                edges.add(i)
                note(changed)
    return found, edges


def verdicts(view, both, factor=1.0, which=-1):
    """Whether some relation is violated, and whether all are met and a problem is known; one relation may be other."""
    kept = [
        bool(holds(np.asarray(left * (factor if i == which else 1)), c.op, np.asarray(right)))
        for i, (c, (left, right)) in enumerate(zip((*view.feasible, *view.witnessed), both, strict=True))
    ]
    return not all(kept[: len(view.feasible)]), all(kept)


def wrong(view, found, factor=1.0, which=-1):
    """The constants at which a witness and the relations contradict each other."""
    out = []
    for both, built, c in found:
        outside, inside = verdicts(view, both, factor, which)
        if (outside and built) or (inside and not built):
            out.append((c, both, built))
    return out


def test_every_form_that_can_be_a_guarantee_declares_its_feasible_set():
    assert len(FORMS) > 150
    for name, (result, form) in FORMS.items():
        declared = feasible_set(result, form)
        assert declared is not None, f"{name}: add its result to FEASIBLE"
        symbols = {s.name for c in declared.all for s in c.left.free_symbols | c.right.free_symbols}
        assert symbols <= form.needs, name


@pytest.mark.parametrize("paper", PAPERS)
def test_rules_and_results_are_those_of_the_paper(paper):
    """No rule, and no result that is declared, is about nothing."""
    declared = paper_module(paper).FEASIBLE
    forms = [(r, f) for r in paper_module(paper).RESULTS for f in r.forms]
    assert {*declared.results} <= {r.key.partition("/")[2] for r, _ in forms}
    assert all(any(rule.applies(r, f) for r, f in forms) for rule in declared.rules)


@pytest.mark.parametrize("name", [name for name in FORMS if name not in COMPUTED])
def test_what_is_feasible_has_a_witness_and_nothing_else_has(name):
    result, form = FORMS[name]
    view = compiled_form(result, form)
    found, _ = tried(name)
    assert any(verdicts(view, both)[1] for both, _, _ in found)
    for c, both, built in wrong(view, found):
        pytest.fail(f"{ {k: v.tolist() for k, v in c.items()} }: {both}, a witness: {built}")


@pytest.mark.parametrize("paper", PAPERS)
def test_every_relation_is_tested_by_a_factor_of_two(paper):
    """A relation that is twice as strict contradicts a witness, and one that is half as strict a missing one.

    Where problems are known beyond the relations only in part, half as strict a relation, and twice as strict a region
    of known problems, are no mistakes.
    """
    for name, (result, form) in FORMS.items():
        view = compiled_form(result, form)
        if result.paper != paper or name in COMPUTED:
            continue
        found, edges = tried(name)
        for i, c in enumerate((*view.feasible, *view.witnessed)):
            if c.op == "==":
                continue
            witness = i >= len(view.feasible)
            seen = any(built and 0 < both[i][0] < 2 * both[i][0] > both[i][1] for both, built, _ in found)
            factors = [2] * (seen and not witness and (result.key, i) not in LOOSE)
            factors += [0.5] * (i in edges and (witness or not view.witnessed))
            for factor in factors:
                assert wrong(view, found, factor, i), f"{name}: {factor} times the left of {c.printed().exact}"


@pytest.mark.parametrize("name", COMPUTED)
def test_constants_that_follow_from_rates_occur_together_and_others_are_not_known_to(name):
    result, form = FORMS[name]
    given = dict(L=1, F=1, I=1, T=100, sigma=1, delta=1, p=[0.95, 0.97], K=1)
    given |= {"G": 1} if "G" in form.needs else {}
    known = evaluate(result, given, form.name, assume="all")
    assert not any(reason.startswith("no problem") for reason in known.why_not)
    numbers = {n: c.value for n, c in known.constants.items() if n not in ("p", "K")}
    alone = evaluate(result, numbers, form.name, assume="all")
    assert not alone.guarantee
    assert alone.why_not[0].startswith("no problem is known to have these constants: give p instead of")


MASKS = dict(L=1, mu=1, sigma=0, G=1, Gamma=0, Delta1=0, N=1, K=1, S=10, T=2, d=1)
FAR = dict(L=1, mu=1, sigma=0, G=0.01, q=0, Gamma=0, Delta1=100, N=1, K=1, S=2, T=9)
SILOS = dict(L=1, Lmax=1, Delta=1, Q=1, R=10, S=1, SK=5, eta=0.1)
SQUARES = dict(L=1, F=1, I=1, P=1, T=10, gamma=0.01, eta=1, rho=0.1, sigma=0, nu=0, beta=0, delta=0, sumsq=1)
EMPTY = {
    ("fedmrn/theorem-1", "repaired:R1"): (MASKS, "masks may all point one way", "got 2 > 1", {"S": 4}),
    ("fedmrn/theorem-1", "sharp"): (FAR, "the clients' gradients at w_1", "got 800 > 0.0008", {"G": 10}),
    ("tdcd/theorem-1", "sharp:Bind"): (SILOS, "every silo has a client at least", "got 5 > 1", {"SK": 0.5}),
    ("arbitrary-participation/theorem-3.1", "explicit:sumsq"): (SQUARES, "rho^2 bounds", "got 1 > 0.01", {"rho": 1}),
}


@pytest.mark.parametrize(("key", "form"), EMPTY)
def test_an_empty_class_is_no_guarantee_and_the_first_reason_says_so(key, form):
    constants, why, got, instead = EMPTY[key, form]
    found = evaluate(key, constants, form, assume="all")
    assert found.valid and not found.guarantee
    assert found.why_not[0].startswith("no problem has these constants: ") and why in found.why_not[0]
    assert found.why_not[0].endswith(got)
    assert not all(one["holds"] for one in found.to_dict()["feasible"]) and why.split()[0] in str(found)
    nonempty = evaluate(key, constants | instead, form, assume="all")
    assert nonempty.guarantee, nonempty.why_not


OPTION_2 = dict(F=1, G=1, I=1, L=1, N=4, R=1, T=1000, sigma=1, delta=1)
OPTION_1 = dict(F=1, I=1, L=1, N=4, R=0.2, T=1000, Wmax=0.012, sigma=1, delta=1)
ENOUGH = {"N": 100, "Q": 1.03}


@pytest.mark.parametrize(
    ("key", "form", "given", "least"),
    [
        ("fedau/corollary-4", "repaired", OPTION_2, {"Q": 5.57}),
        ("fedau/corollary-4", "repaired", OPTION_2 | {"K": 7}, {"Q": 5.57}),
        ("fedau/corollary-4", "repaired:constant", OPTION_2 | {"Q": 0.5}, {"Q": 5.57}),
        ("fedau/corollary-4-option-1", "repaired", OPTION_1, ENOUGH),
        ("fedau/corollary-4-option-1", "repaired:constant", OPTION_1 | {"N": 100}, ENOUGH),
    ],
)
def test_a_set_knows_what_the_form_prescribes(key, form, given, least):
    """FedAU's weights grow to K, which the form prescribes: no rates have R and so small a Q."""
    found = evaluate(key, {"Q": 1.0} | given, form, assume="all")
    assert not found.guarantee and found.why_not[0].startswith("no problem has these constants: ")
    assert evaluate(key, {"Q": 1.0} | given | least, form, assume="all").guarantee


WEIGHTS = dict(K=5, T=10, p=[0.5, 1.0])
SPREAD = dict(L=1, F=1, I=1, P=1, T=10, gamma=0.01, eta=1, N=2, S=3, sigma=1, nu=1, beta=1, delta=1)
IN_TIME = dict(Delta=1, L=1, Lmax=1, Q=1, S=1, eta=0.01, W=10, tcomm=1, tcomp=1)
TWO_EACH = SILOS | {"eta": 0.01, "K": [2, 2]}
UNLIKE = {"N": 3, "R": 99, "W": 50, "Qmean": 7e-4, "Q": 1e-4, "Wmax": 3}


@pytest.mark.parametrize(
    ("key", "form", "given", "said"),
    [
        *(("fedau/theorem-3", "sharp", WEIGHTS | {n: v}, f"{n} = {v} ") for n, v in UNLIKE.items()),
        *(("fedau/lemma-b.7.1", "repaired", {"T": 10, "p": [0.5, 1.0], n: v}, f"{n} = ") for n, v in UNLIKE.items()),
        (
            "arbitrary-participation/theorem-3.1",
            "sharp",
            SPREAD,
            "S = 3 (participants per round, equal weights) exceeds N = 2",
        ),
        (
            "arbitrary-participation/proposition-4.7",
            "repaired:equal-weights",
            dict(N=9, P=2, c=0.1, d=1, S=4, rho=0.9),
            "rho = 0.9 conflicts with 0.5",
        ),
        ("tdcd/theorem-1", "sharp:Bind", TWO_EACH | {"SK": 0.2}, "SK = 0.2 is below 0.5"),
        ("tdcd/theorem-1", "sharp:Bind", TWO_EACH | {"SK": 1}, "SK = 1 is above 0.5"),
        ("tdcd/theorem-1", "sharp:B3", SILOS | {"SK": 1, "sigma": [1.0], "K": [2]}, "SK = 1 "),
        ("tdcd/wall-clock", "repaired", IN_TIME | {"R": 77}, "R = 77 conflicts with 2"),
        ("fed-norm-sgda/lemma-a.3", "printed", {"squares": [1, 2], "n": 3}, "n = 3 conflicts with 2"),
    ],
)
def test_a_constant_that_the_form_does_not_need_contradicts_no_other(key, form, given, said):
    with pytest.raises(FedboundsError, match=re.escape(said)):
        evaluate(key, given, form, assume="all")


def test_of_many_settings_it_says_at_how_many_no_problem_has_them():
    found = evaluate("fedmrn/theorem-1", FAR | {"G": np.array([0.01, 5.0, 20.0])}, "sharp", assume="all")
    assert not found.guarantee and found.why_not[0].startswith("no problem has these constants at 2 of 3 settings: ")


@pytest.mark.parametrize("command", [("eval",), ("rounds", "--epsilon", "5")])
def test_no_command_bounds_what_is_about_nothing(command):
    given = [f"{name}={value}" for name, value in FAR.items() if command[0] == "eval" or name != "T"]
    code, out, err = run(command[0], "fedmrn/theorem-1", *command[1:], "--form", "sharp", "--assume", "all", *given)
    assert code == 0, err
    assert "guarantee: no" in out and "no problem has these constants" in out
    assert "guarantee: yes" not in out


def test_show_lists_the_set():
    _, out, _ = run("show", "tdcd/theorem-1", "--form", "sharp:Bind")
    assert "  feasible set: SK <= S (every silo has a client at least); " in out
    _, out, _ = run("show", "tdcd/theorem-1", "--form", "sharp:B3")
    assert "  feasible set: all legal values\n" in out
    _, out, _ = run("show", "fedmrn/theorem-1", "--form", "sharp")
    assert "necessary relations only, problems are known: equal quadratics" in out


def test_two_steps_ask_of_masks_what_two_points_do():
    """2 S sqrt(d) <= max(8 L/mu, S): gradients at w_1 + a and w_1 - a in all coordinates differ by 2 mu a sqrt(d)."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        S, d, kappa = int(rng.integers(1, 9)), int(rng.integers(1, 9)), float(rng.uniform(1, 9))
        constants = MASKS | dict(S=S, d=d, L=kappa)
        reasons = evaluate("fedmrn/theorem-1", constants, "repaired:R1", assume="all").why_not
        empty = any(reason.startswith("no problem has") for reason in reasons)
        assert empty == (2 * S * np.sqrt(d) > max(8 * kappa, S) * (1 + 1e-9))


@pytest.mark.parametrize("paper", PAPERS)
def test_no_relation_depends_on_the_units(paper):
    """Values of f, lengths and times in other units leave every relation as it is."""
    units = {"f": 2.0, "x": 3.0, "y": 3.0, "time": 5.0}
    for name, (result, form) in FORMS.items():
        view = compiled_form(result, form)
        if result.paper != paper or name in COMPUTED or not (view.feasible or view.witnessed):
            continue
        for both, _, c in tried(name)[0][:8]:
            factors = {
                n: np.prod([units[u] ** float(power) for u, power in result.notation[n].dimension.exponents]) for n in c
            }
            scaled = sides(view, {n: c[n] * factors[n] for n in c})
            assert scaled is not None
            for (left, right), (other_left, other_right) in zip(both, scaled[0], strict=True):
                assert np.isclose(left * other_right, right * other_left, rtol=1e-6), f"{name}: {c}"


def test_eval_names_a_violated_relation_or_else_where_a_problem_is_known():
    known = ["S=17", "T=1000", "L=1", "mu=0.1", "sigma=1", "q=0.5", "N=10", "K=1"]
    violated = run("eval", "fedmrn/theorem-1", *known, "G=0.1", "Gamma=0", "Delta1=400")[1]
    assert "  FAILS  (T - 1)*(Delta1*mu**2 + 2*Gamma*mu) <= G**2*(T - 1) (strong convexity:" in violated
    assert "a problem is known only" not in violated and "problems are known" not in violated
    unknown = run("eval", "fedmrn/theorem-1", *known, "G=0.459", "Gamma=1", "Delta1=0.001")[1]
    assert "  open   a problem is known only for equal quadratics" in unknown and "FAILS" not in unknown
