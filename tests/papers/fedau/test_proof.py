"""The proofs of the second paper's optimization results: what they show, what they need, what their rules refuse."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
import sympy as sp

from fedbounds.bounds.audit import proof_step_checker as steps
from fedbounds.bounds.audit.axioms import Descent, NoiseOverTime, Uncorrelated
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.claim_set import ClaimSet, result_claims
from fedbounds.bounds.audit.nonnegative import prove
from fedbounds.bounds.audit.participation_rules import (
    LOCAL_NOISE,
    CauchySchwarz,
    Centered,
    ClientMean,
    MeanUpdate,
    SecondMoment,
    Squared,
    Triangle,
    Vanishing,
    given_past,
    step_mean,
)
from fedbounds.bounds.audit.proof_step_checker import ProofSetting, proof_of, trace
from fedbounds.bounds.audit.rules import Telescope, power_sum
from fedbounds.bounds.audit.vectors import Atom, Vec, inner, square
from fedbounds.bounds.papers.fedau.lemmas import E_2
from fedbounds.bounds.papers.fedau.notation import NOTATION as symbols
from fedbounds.bounds.papers.fedau.proof import OPTIMIZATION as PROOFS
from fedbounds.bounds.papers.fedau.proof.averaged_sums import (
    HalfStepSum,
    UnrollMean,
    average_dominates,
    averaged_sum,
    half_step_ratio,
    mean_power_sum,
    sum_dominates,
)
from fedbounds.bounds.papers.fedau.proof.descent import DESCENT_PROOF
from fedbounds.bounds.papers.fedau.proof.drift import APART, GENERAL, round_setting, step_setting
from fedbounds.bounds.papers.fedau.results import THEOREM_2
from fedbounds.bounds.theory.client_reductions import MeanOverClients, MedianOverClients, SumOverClients
from fedbounds.bounds.theory.named_numbers import NamedNumber
from tests.mutation.theorems import Bench, place_step, run_checker
from tests.papers.committed_verdicts import proved_forms, vacuous

PROVED = {
    "theorem-1": {"printed", "repaired"},
    "theorem-2": {"printed", "explicit", "sharp", "sharp:mean-Q"},
    "theorem-2-option-1": {"printed", "explicit", "sharp", "sharp:mean-Q"},
    "theorem-b.4.1": {"printed", "repaired", "repaired:smaller-cap", "sharp", "sharp:no-gap"},
    "lemma-b.3.1": {"printed", "sharp"},
    "lemma-b.3.2": {"printed", "sharp", "sharp:average"},
    "lemma-b.3.3": {"repaired", "repaired:smaller-cap", "repaired:I=1", "sharp"},
    "lemma-b.5.1": {"repaired", "repaired:smaller-cap", "repaired:I=1", "sharp"},
}


def claims_of_proofs():
    results = {proof.result.key: proof.result for proof in PROOFS}
    yield from (claim for result in results.values() for claim in result_claims(result))
    yield from (claim for proof in PROOFS for claim in proof.claims())


@pytest.fixture(scope="module")
def claim_set():
    return ClaimSet.from_claims(claims_of_proofs(), (steps.CHECKER,))


@pytest.fixture(scope="module")
def bench():
    return Bench({claim.id: claim for claim in claims_of_proofs()}, (steps.CHECKER,))


# --- What is shown ----------------------------------------------------------------------------------------------------


def test_the_forms_that_are_true_are_proved_and_no_others():
    found = proved_forms("fedau")
    assert {result: found[result] for result in PROVED} == PROVED


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_only_the_papers_false_step_and_what_rests_on_it_are_not_proved_and_no_step_is_vacuous(claim_set, every):
    """In the proof with the false step; the audit proves all."""
    proofs = [proof for proof in PROOFS if every or proof.id == "fedau/lemma-b.3.3"]
    verdicts = {step.id: claim_set.verdict(step.id) for proof in proofs for step in proof.claims()}
    unproved = [name.removeprefix("fedau/lemma-b.3.3/") for name, v in verdicts.items() if v.outcome != "proved"]
    assert unproved == ["S10", "S10'-printed", "S11b-printed", "S16-printed", "B.3.5-printed"]
    assert not any(v.flags for v in verdicts.values()) and not vacuous("fedau")
    assert verdicts["fedau/lemma-b.3.3/S10"].evidence == "v may depend on the noise"
    assert verdicts["fedau/lemma-b.3.3/S10'-printed"].evidence.startswith("it follows, but S10 is not proved")


def test_the_printed_descent_lemma_fails_at_that_step_alone(claim_set):
    verdict = claim_set.verdict("fedau/lemma-b.3.3[printed]")
    assert verdict.outcome == "unknown"
    assert verdict.evidence == "not every step is proved: fedau/lemma-b.3.3/S10 (v may depend on the noise)"


@pytest.mark.parametrize("form", ["theorem-2[explicit]", "theorem-2-option-1[explicit]", "theorem-b.4.1[repaired]"])
def test_the_theorems_do_not_rest_on_the_false_step(claim_set, form):
    subject = claim_set.claims[f"fedau/{form}"].subject
    proof = proof_of(claim_set, subject)
    rests_on = {name for name, _ in trace(claim_set, proof, proof.step(proof.ends[subject.form.name])).steps}
    assert "fedau/lemma-b.3.3/S10" not in rests_on
    assert any(name.endswith("/S10'") for name in rests_on)


# --- What is needed ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [assumption.name for assumption in THEOREM_2.form("explicit").assumptions])
def test_theorem_2_fails_without_any_one_of_its_assumptions(bench, name):
    ruling = bench.judged(f"theorem-2[explicit]: without {name}")
    assert f"the proof uses {name}, which the form does not assume" in ruling.evidence


def test_the_local_drift_needs_neither_independent_clients_nor_participation(claim_set):
    proof = next(p for p in PROOFS if p.id == "fedau/lemma-b.3.2")
    found = trace(claim_set, proof, proof.step("B.3.3"))
    names = {"smooth", "unbiased-noise", "martingale-noise", "bounded-divergence", "objective-weights"}
    assert found.assumptions == names


def test_what_is_known_at_the_start_of_the_round_is_not_enough_for_the_printed_step(bench):
    name = "fedau/lemma-b.3.3/S10'-printed"
    subject = bench.claims[name].subject
    other = tuple("S10'a" if premise == "S10" else premise for premise in subject.step.premises)
    planted, _ = place_step(subject, bench.claims, replace(subject.step, premises=other))
    assert "the premises leave" in run_checker(steps.CHECKER, bench.claims | planted, name).evidence


# --- Geometric sums ---------------------------------------------------------------------------------------------------

n = sp.Symbol("n", integer=True, positive=True)
x = sp.Symbol("x", positive=True)
RATIO = half_step_ratio(n)
NOWHERE = ProofSetting("nothing", {})


@pytest.mark.parametrize("steps_taken", [1, 2, 3, 7, 40])
def test_the_two_inequalities_of_the_series_are_those_of_the_sums(steps_taken):
    half = Fraction(1, 2 * steps_taken)
    power = ((1 + half) / (1 - half)) ** steps_taken
    assert averaged_sum(steps_taken, average=False) == (1 - half) * (power - 1)
    assert averaged_sum(steps_taken, average=True) == power * (1 - half) ** 2 - (1 - half) - (1 - half) ** 2
    ratio = 1 + 1 / (sp.Integer(steps_taken) - sp.Rational(1, 2))
    powers = [sum(ratio**j for j in range(i)) for i in range(steps_taken + 1)]
    assert powers[-1] / steps_taken == sp.Rational(str(averaged_sum(steps_taken, average=False)))
    assert mean_power_sum(ratio, sp.Integer(steps_taken)) == sum(powers[:-1], sp.S.Zero) / steps_taken


def test_the_sums_grow_towards_their_limits():
    sums = [float(averaged_sum(k, average=False)) for k in (1, 2, 5, 20, 100)]
    averages = [float(averaged_sum(k, average=True)) for k in (1, 2, 5, 20, 100)]
    assert sums == sorted(sums) and averages == sorted(averages)
    assert 0 < float(sp.E) - 1 - sums[-1] < 0.02 and 0 < float(sp.E) - 2 - averages[-1] < 0.02
    assert averages[0] == 0


def test_the_series_of_the_logarithm_is_the_one_compared():
    exact = sp.series(sp.log((1 + x) / (1 - x)) / (2 * x), x, 0, 8).removeO()
    assert [exact.coeff(x, k) for k in range(8)] == [sp.Rational(1, k + 1) if k % 2 == 0 else 0 for k in range(8)]
    right = sp.series(sp.log(sp.E - 3 * x + x**2), x, 0, 5).removeO()
    alpha = (3 + sp.sqrt(9 - 4 * sp.E)) / 2
    for k in range(1, 5):
        expected = -2 * sp.re(sp.N(alpha**-k)) / k
        assert abs(sp.N(right.coeff(x, k)) - expected) < 1e-12
    assert sum_dominates() and average_dominates()


def geometric(constant, average=False, right=None, left=None):
    sums = mean_power_sum(RATIO, n) if average else power_sum(RATIO, n)
    conclusion = Relation(sums if left is None else left, constant * n if right is None else right)
    return HalfStepSum(n, constant, average).check(conclusion, (), (), NOWHERE).holds


def test_the_smallest_constants_are_accepted_and_smaller_ones_refused():
    kappa = NamedNumber("k", sp.E - 2)
    assert geometric(sp.Integer(5)) and geometric(1 + kappa) and geometric(sp.Rational(172, 100))
    assert geometric(kappa, average=True) and geometric(sp.Rational(719, 1000), average=True)
    assert not geometric(sp.Rational(171, 100)) and not geometric(kappa)
    assert not geometric(sp.Rational(718, 1000), average=True)
    assert not geometric(NamedNumber("k", sp.E - 3), average=True)
    assert not geometric(x)


def test_the_geometric_sum_is_of_this_ratio_and_this_many_steps():
    five = sp.Integer(5)
    assert not geometric(five, right=4 * n)
    assert not geometric(five, left=power_sum(1 + 1 / (n - sp.Rational(3, 5)), n))
    assert not geometric(five, left=power_sum(RATIO, n + 1))
    real = HalfStepSum(x, five).check(Relation(power_sum(half_step_ratio(x), x), five * x), (), (), NOWHERE)
    assert "need not be a whole number" in real.evidence


def test_an_unrolled_recursion_is_averaged_over_its_steps():
    setting, whole = step_setting("f"), round_setting("f")
    y, Y, x0, xi = (Vec.atom(name) for name in ("y", "Y", "x0", "xi"))
    now, mean, after = square(y - x0), square(Y - x0), square(y - xi - x0)
    ratio, adds = 1 + 1 / (symbols.I - sp.Rational(1, 2)), symbols.sigma**2
    start, recursion = Relation(now, sp.S.Zero, "=="), Relation(after, ratio * now + adds)
    rule = UnrollMean(now, after, symbols.I, ratio=ratio, adds=adds, names=(("y", "Y"),))
    right = adds * mean_power_sum(ratio, symbols.I)

    def holds(rule=rule, left=mean, right=right, premises=(start, recursion), setting=whole):
        return rule.check(Relation(left, right), premises, (), setting).holds

    assert holds()
    assert not holds(right=right * sp.Rational(9, 10))
    assert not holds(left=now)
    assert not holds(premises=(start,))
    assert not holds(premises=(Relation(now, sp.S.One, "=="), recursion))
    assert not holds(rule=replace(rule, adds=adds / 2))
    assert not holds(rule=replace(rule, names=()))
    assert not holds(rule=replace(rule, names=(("y", "x0"),)))
    assert not holds(setting=setting)


# --- Axioms of independent participation ------------------------------------------------------------------------------

ROUND = round_setting("f~")
C = symbols.sigma**2
G0, F0, V, A, S, Z, D, GY, XI, X0 = (Vec.atom(a) for a in ("g0", "f0", "v", "a", "s", "z", "d", "GY", "Xi", "x0"))
OWN = square(G0)  # differs between the clients


def finding(rule, conclusion, *premises, setting=ROUND, facts=()):
    return rule.check(conclusion, premises, facts, setting)


def with_atom(name, **fields):
    return replace(ROUND, atoms={**ROUND.atoms, name: replace(ROUND.atoms[name], **fields)})


def test_noise_is_uncorrelated_with_the_start_of_the_round_but_not_with_later_gradients():
    rule = given_past(A, G0)
    assert finding(rule, Relation(inner(A, G0), sp.S.Zero, "==")).holds
    assert not finding(rule, Relation(inner(A, G0), C, "==")).holds
    assert finding(given_past(A, V), Relation(inner(A, V), sp.S.Zero, "==")).evidence == "v may depend on the noise"
    assert not finding(given_past(V, G0), Relation(inner(V, G0), sp.S.Zero, "==")).holds
    assert set(rule.needs) == {"unbiased-noise", "martingale-noise"} < set(Uncorrelated(A, G0).needs)


def test_noise_averages_out_over_the_local_steps():
    each, rule = Relation(square(XI), C), NoiseOverTime("a", "Xi", symbols.I, needs=LOCAL_NOISE)
    assert finding(rule, Relation(square(A), C / symbols.I), each).holds
    assert not finding(rule, Relation(square(A), C / symbols.I**2), each).holds
    assert not finding(replace(rule, each="v"), Relation(square(A), C / symbols.I), each).holds
    assert not finding(rule, Relation(square(A), C / symbols.I)).holds


def test_jensen_over_the_local_steps_needs_means_of_one_client():
    assert finding(step_mean(GY - G0), Relation(square(V - G0), square(GY - G0))).holds
    assert not finding(step_mean(GY - G0), Relation(square(GY - G0), square(V - G0))).holds
    assert "not declared" in finding(step_mean(V), Relation(square(S), square(V))).evidence
    moving = with_atom("g0", still=False)
    assert not finding(step_mean(GY - G0), Relation(square(V - G0), square(GY - G0)), setting=moving).holds


def test_jensen_over_the_clients_needs_a_bound_for_every_client():
    rule, wanted = ClientMean(V - G0, uniform=False), Relation(square(S - F0), C)
    assert finding(rule, wanted, Relation(square(V - G0), C)).holds
    assert not finding(rule, Relation(square(S - F0), C / 2), Relation(square(V - G0), C)).holds
    assert not finding(rule, Relation(square(S), C), Relation(square(V - G0), C)).holds
    own = finding(rule, Relation(square(S - F0), OWN), Relation(square(V - G0), OWN))
    assert "differs between the clients" in own.evidence
    assert not finding(rule, wanted, Relation(square(V), C)).holds
    assert not finding(rule, wanted, Relation(square(V - G0), C, "==")).holds
    assert not finding(rule, wanted).holds
    assert not finding(ClientMean(A, uniform=False), Relation(square(S), C), Relation(square(A), C)).holds
    assert rule.needs == ("objective-weights",) and ClientMean(V, uniform=True).needs == ()


def test_cauchy_schwarz_is_about_a_difference_of_two_sums_of_one_vector():
    gap, each = GENERAL.gap, Relation(square(V), C)
    assert finding(CauchySchwarz("v", Z - S, gap), Relation(square(Z - S), gap * C), each).holds
    assert not finding(CauchySchwarz("v", Z - S, gap), Relation(square(Z - S), gap * C / symbols.N), each).holds
    for total in (Z + S, Z, Z - D, Z - 2 * S):
        assert not finding(CauchySchwarz("v", total, gap), Relation(square(total), gap * C), each).holds
    assert not finding(CauchySchwarz("a", Z - S, gap), Relation(square(Z - S), gap * C), Relation(square(A), C)).holds
    own = Relation(square(V), OWN)
    assert not finding(CauchySchwarz("v", Z - S, gap), Relation(square(Z - S), gap * OWN), own).holds


def test_the_mean_of_the_update_is_taken_against_what_is_known():
    assert finding(MeanUpdate("d", F0), Relation(inner(D, F0), inner(Z, F0), "==")).holds
    assert not finding(MeanUpdate("d", F0), Relation(inner(D, F0), inner(S, F0), "==")).holds
    assert not finding(MeanUpdate("d", Z), Relation(inner(D, Z), inner(Z, Z), "==")).holds
    assert not finding(MeanUpdate("d", G0), Relation(inner(D, G0), inner(Z, G0), "==")).holds
    assert not finding(MeanUpdate("z", F0), Relation(inner(Z, F0), inner(S, F0), "==")).holds
    assert set(MeanUpdate("d", F0).needs) == {
        "bernoulli-participation",
        "past-weights",
        "unbiased-noise",
        "martingale-noise",
    }


def test_the_second_moment_adds_the_clients_variances_to_the_squared_mean():
    weight = symbols.Z / symbols.N**2
    rule, each = SecondMoment("d", "v", "a", weight), Relation(square(V + A), C)
    wanted = Relation(square(D), weight * C + square(Z))
    assert finding(rule, wanted, each).holds
    assert not finding(rule, Relation(square(D), weight * C), each).holds
    assert not finding(rule, Relation(square(D), weight * C + square(S)), each).holds
    assert not finding(rule, wanted, Relation(square(V), C)).holds
    assert not finding(SecondMoment("d", "v", "v", weight), wanted, Relation(4 * square(V), C)).holds
    assert not finding(SecondMoment("s", "v", "a", weight), Relation(square(S), weight * C), each).holds
    own = Relation(square(V + A), OWN)
    assert not finding(rule, Relation(square(D), weight * OWN + square(Z)), own).holds
    assert not finding(rule, wanted, each, setting=with_atom("z", of="sum of a")).holds
    assert "independent-clients" in rule.needs and "bernoulli-participation" in rule.needs


def test_the_second_moment_is_right_for_three_clients_by_enumeration():
    rates, weights = (Fraction(1, 2), Fraction(1, 3), Fraction(1)), (Fraction(2), Fraction(5, 2), Fraction(1))
    gradients, noises = (Fraction(1), Fraction(-2), Fraction(3)), (Fraction(1), Fraction(2), Fraction(0))
    second, clients = Fraction(0), len(rates)
    for present in range(2**clients):
        for signs in range(2**clients):
            chance, total = Fraction(1), Fraction(0)
            for k, p in enumerate(rates):
                here, sign = present >> k & 1, 1 if signs >> k & 1 else -1
                chance *= (p if here else 1 - p) / 2
                total += here * weights[k] * (gradients[k] + sign * noises[k]) / clients
            second += chance * total**2
    mean = sum(p * w * v for p, w, v in zip(rates, weights, gradients, strict=True)) / clients
    largest = max(v**2 + a**2 for v, a in zip(gradients, noises, strict=True))
    assert second <= sum(p * w**2 for p, w in zip(rates, weights, strict=True)) / clients**2 * largest + mean**2
    exact = sum(
        p * w**2 * (v**2 + a**2) - (p * w * v) ** 2
        for p, w, v, a in zip(rates, weights, gradients, noises, strict=True)
    )
    assert second == mean**2 + exact / clients**2


def test_the_weighted_objective_descends_as_a_mean_of_smooth_functions():
    step, decrease = -symbols.gamma * D, sp.Symbol("decrease", real=True)
    right = sp.expand(inner(F0, step) + symbols.L / 2 * square(step))
    rule = Descent("f0", step, decrease, symbols.L, "f~")
    assert finding(rule, Relation(-decrease, right)).holds
    assert not finding(rule, Relation(-decrease, right), setting=round_setting("f")).holds
    assert not finding(rule, Relation(decrease, right)).holds
    assert not finding(replace(rule, decrease=sp.Symbol("up", positive=True)), Relation(-decrease, right)).holds
    used = DESCENT_PROOF.step("D1")
    assert used is not None and used.rule.needs == ("smooth", "objective-weights")


def test_deviations_from_the_mean_gradient_sum_to_zero():
    phi, gn, gf, gt = symbols.varphi, Vec.atom("gn"), Vec.atom("gf"), Vec.atom("gt")
    each = Relation(square(gn - gf), C)

    def found(shift, spread=None, each=each, setting=APART):
        spread = SumOverClients(sp.Abs(phi - shift)) if spread is None else spread
        within = Relation(square(gt - gf), spread**2 * C)
        return finding(Centered("gn", "gf", phi, shift), within, each, setting=setting)

    assert found(MedianOverClients(phi)).holds and found(1 / symbols.N).holds
    assert not found(phi).holds and not found(phi / 2 + MeanOverClients(phi)).holds
    assert not found(MedianOverClients(phi), SumOverClients(sp.Abs(phi))).holds
    assert not found(MedianOverClients(phi), each=Relation(square(gn - gt), C)).holds
    moved = replace(APART, atoms={**APART.atoms, "gt": Atom("gt", "gradient", 0, "elsewhere", at="y", of="f~")})
    assert not found(MedianOverClients(phi), setting=moved).holds


def test_the_triangle_inequality_needs_bounds_that_are_not_negative():
    a, b, real = *sp.symbols("a b", nonnegative=True), sp.Symbol("r", real=True)
    first, second = Relation(square(S), a**2), Relation(square(Z), b**2)
    rule, wanted = Triangle(S, Z, (a, b)), Relation(square(S + Z), (a + b) ** 2)
    assert finding(rule, wanted, first, second).holds
    assert not finding(rule, Relation(square(S + Z), a**2 + b**2), first, second).holds
    assert not finding(rule, wanted, second, first).holds
    signed = Relation(square(Z), real**2)
    assert not finding(Triangle(S, Z, (a, real)), Relation(square(S + Z), (a + real) ** 2), first, signed).holds


def test_relations_of_nonnegative_sides_may_be_squared():
    cap = Relation(symbols.gamma, 1 / (4 * sp.sqrt(15) * symbols.L * symbols.I))
    wanted = Relation(symbols.gamma**2, 1 / (240 * symbols.L**2 * symbols.I**2))
    assert finding(Squared(), wanted, facts=(cap,)).holds and finding(Squared(), wanted, cap).holds
    assert not finding(Squared(), Relation(wanted.left, wanted.right / 2), facts=(cap,)).holds
    signed = sp.Symbol("r", real=True)
    assert not finding(Squared(), Relation(signed**2, C), facts=(Relation(signed, symbols.sigma),)).holds


def test_an_average_over_rounds_knows_what_differs_between_them():
    decrease, a, w = sp.Symbol("[decrease]", real=True), sp.Symbol("[a]"), sp.Symbol("[w]", nonnegative=True)
    average, T, F, W = sp.Symbol("[average]"), symbols.T, symbols.F, symbols.W
    rule = Telescope(decrease, F, T, average, a, ((w, W),), "bounded-below", (symbols.Wt,))
    right = decrease / symbols.gamma + 3 * w + C

    def holds(one=right, mean=F / (symbols.gamma * T) + 3 * W + C, rule=rule):
        return finding(rule, Relation(average, mean), Relation(a, one)).holds

    assert holds()
    assert not holds(mean=F / (symbols.gamma * (T + 1)) + 3 * W + C)
    assert not holds(mean=F / (symbols.gamma * T) + 2 * W + C)
    assert not holds(one=-decrease, mean=-F / T)
    assert not holds(one=decrease * w, mean=F * W / T)
    assert not holds(one=right + sp.Symbol("[z]"), mean=F / (symbols.gamma * T) + 3 * W + C + sp.Symbol("[z]"))
    assert not holds(one=right + symbols.Wt, mean=F / (symbols.gamma * T) + 3 * W + C + symbols.Wt)
    assert not holds(one=right + square(F0), mean=F / (symbols.gamma * T) + 3 * W + C + square(F0))
    assert not holds(rule=replace(rule, below=""))
    assert not holds(rule=replace(rule, rounds=T - 1), mean=F / (symbols.gamma * (T - 1)) + 3 * W + C)
    assert rule.needs == ("bounded-below",)


def test_what_vanishes_has_the_limit_zero():
    T, left = symbols.T, sp.Symbol("[a]")
    assert finding(Vanishing(T), Relation(left, sp.S.Zero), Relation(left, C / sp.sqrt(T) + 1 / T)).holds
    assert finding(Vanishing(T), Relation(left, C), Relation(left, C + 1 / T)).holds
    assert not finding(Vanishing(T), Relation(left, sp.S.Zero), Relation(left, C + 1 / T)).holds
    assert not finding(Vanishing(T), Relation(left, sp.S.Zero), Relation(sp.Symbol("[b]"), 1 / T)).holds


# --- Roots of numbers -------------------------------------------------------------------------------------------------


def test_caps_with_roots_of_numbers_are_compared():
    gamma, both = symbols.gamma, symbols.L * symbols.I
    printed, drift = 1 / (4 * sp.sqrt(15) * both), 1 / (sp.sqrt(30) * both)
    assert prove(drift - gamma, (Relation(gamma, printed),)).holds
    assert not prove(printed - gamma, (Relation(gamma, drift),)).holds
    assert prove(1 / (15 * both) - gamma, (Relation(gamma, printed),)).holds
    assert not prove(1 / (16 * both) - gamma, (Relation(gamma, printed),)).holds


def test_kappa_is_read_with_its_value():
    assert prove(sp.Rational(17, 20) - sp.sqrt(E_2)).holds and prove(sp.Rational(18, 25) - E_2).holds
    assert not prove(sp.Rational(84, 100) - sp.sqrt(E_2)).holds
