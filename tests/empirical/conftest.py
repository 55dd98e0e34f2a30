"""What several tests of the invariants share."""

from random import Random

import pytest
from hypothesis import find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from fedbounds.empirical.invariants.strategies import cases


@pytest.fixture(scope="session")
def noisy_cases():
    """Sixteen cases, the same for all implementations, and sixteen whose weights need not sum to one."""
    drawn = []
    for many, asked in ((16, cases(noise=True)), (16, cases(noise=True, unit_sum=False))):
        quick = settings(max_examples=many, database=None, deadline=None)
        with pytest.raises(NoSuchExample):
            find(asked, lambda case: drawn.append(case) or False, settings=quick, random=Random(0))
    return st.sampled_from(drawn)
