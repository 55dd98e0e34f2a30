"""What several papers' tests of figures share."""

from collections.abc import Iterator

import pytest

from tests.pictures import distinct_in_gray as distinct_in_gray


@pytest.fixture(scope="module")
def same_sources() -> Iterator[None]:
    """Every sweep of a figure would read and parse the sources for the keys of its runs: see test_sweep_keys."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedbounds.empirical.sweep.runs.source_digest", lambda also: "sources")
        yield
