"""The rates of Corollary 4, small."""

import numpy as np

from fedbounds.figures.charts.rate import rate_claims
from fedbounds.figures.papers.fedau.rates import estimated_rates, known_rates, run_known_rates


def test_known_rates_fall_as_predicted_exactly():
    rates = known_rates((500, 2000, 8000), 2000)
    assert [one.predicted for one in rates.values()] == [-0.5, -0.5, -1.0]
    claims = rate_claims(rates)
    assert len(claims) == 6 and {claim.verdict for claim in claims} == {"reproduced"}


def test_fedau_has_an_interval_over_its_seeds():
    (one,) = estimated_rates((16, 64), 16, 3).values()
    assert one.measured.seeds == 3 and one.measured.low < one.measured.value < one.measured.high
    assert one.predicted == -0.5 and (one.family.measured < one.family.bound).all()


def test_a_ratio_is_of_one_run_at_the_steps_of_the_result():
    found = run_known_rates("sharp", 200, participation=0.2)
    assert found.guarantee and np.all(found.ratio < 1) and found.rounds.tolist() == [200]
