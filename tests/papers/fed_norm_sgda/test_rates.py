"""The rates of Theorem 1 at its steps, small."""

from fedbounds.empirical.comparison.compare_run import confront_family
from fedbounds.empirical.comparison.convergence_slopes import Rate
from fedbounds.empirical.participation import WithoutReplacement
from fedbounds.figures.papers.fed_norm_sgda.rates import THEOREM, problem, run_at_its_steps


def test_too_few_rounds_for_x_to_arrive_are_slower_than_predicted_and_say_from_where_the_conditions_hold():
    family = confront_family(
        THEOREM, problem(clients=4), WithoutReplacement(4, 4), (50, 200), local_steps=2, form="sharp"
    )
    one = Rate(family)
    assert one.predicted == -0.5 and one.as_fast is False
    assert one.covered is not None and one.covered > 200 and not family.valid.any()


def test_a_ratio_is_of_one_run_at_the_steps_of_the_theorem():
    found = run_at_its_steps("clients", 4.0, "sharp", 100)
    assert found.rounds.tolist() == [100] and found.ratio[-1] < 1
