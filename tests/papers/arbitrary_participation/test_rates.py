"""The rate pictures of Corollaries 3.2 and 3.3, small, and their claims."""

from dataclasses import replace

import pytest
from sympy import Rational

from fedbounds.empirical.comparison.convergence_slopes import Rate
from fedbounds.figures.charts.rate import rate_claims
from fedbounds.figures.papers.arbitrary_participation.rates import exact_rate, exact_rates

SMALL = (500, 2000, 8000)


def test_the_small_picture_shows_the_slopes_and_where_the_largest_term_changes(tmp_path):
    picture = exact_rate(SMALL, 2000)
    assert "over T = 2,000 to 8,000 measured -0.5" in picture.caption
    assert "From T = 356 on the largest term is noise" not in picture.caption  # before the first run
    found = picture.provenance["Corollary 3.2, cyclic"]
    assert (found["predicted"], found["leading term"], found["guarantee"]) == (-0.5, "noise", True)
    assert picture.provenance["Corollary 3.2, sampled each round"]["predicted"] == 0.0
    assert picture.provenance["Corollary 3.2, cyclic, no noise"]["predicted"] == -1.0
    assert all(path.stat().st_size for path in picture.save(tmp_path / "rate.png"))


def test_every_family_falls_as_fast_as_bounded_and_stays_under_its_bound():
    claims = rate_claims(exact_rates(SMALL, 2000))
    assert len(claims) == 8 and {claim.verdict for claim in claims} == {"reproduced"}


@pytest.mark.parametrize("name", ["Corollary 3.2, cyclic", "Corollary 3.2, cyclic, no noise"])
def test_a_wrong_power_of_the_number_of_rounds_makes_the_claim_fail(name):
    one = exact_rates(SMALL, 2000)[name]
    c = one.family
    T = next(s for s in c.form.symbols if str(s) == "T")
    wrong = replace(
        c.form, terms=tuple(replace(t, expression=t.expression / T ** Rational(1, 4)) for t in c.form.terms)
    )
    result = replace(c.result, forms=tuple(wrong if f.name == wrong.name else f for f in c.result.forms))
    planted = Rate(replace(c, form=wrong, result=result), one.since)
    assert rate_claims({name: planted})[0].verdict == "not reproduced"
