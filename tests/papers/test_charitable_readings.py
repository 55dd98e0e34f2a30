"""Errata of FedMRN and TDCD begin with the charitable reading, and quote the paper's qualifier."""

from __future__ import annotations

import pytest

from fedbounds.bounds.audit.errata import paper_errata, paper_wording

LITERAL = "false under a literal reading"
READINGS = {  # the erratum: its degree, words of the paper, and how the charitable reading begins
    ("tdcd", "average-over-the-first-iterates"): (
        LITERAL,
        "averaging over all the communication rounds",
        "The average is meant to be",
    ),
    ("fedmrn", "frozen-amplitude"): (
        "false as an inference",
        "under the conditions of Theorem 1",
        "The remark speaks under the conditions",
    ),
    ("fedmrn", "first-moment-of-masks"): (
        LITERAL,
        "the variance of stochastic gradients is bounded",
        "Read as a bound",
    ),
    ("fedmrn", "first-moments-in-theorem-1"): (
        LITERAL,
        "the variance of stochastic gradients is bounded",
        "The variance of stochastic",
    ),
    ("fedmrn", "first-moments-in-theorem-2"): (
        LITERAL,
        "the variance of stochastic gradients is bounded",
        "The variance of stochastic",
    ),
    ("tdcd", "labels-returned-once"): ("unstated but harmless", "", "How often derivatives come back is not specified"),
    ("tdcd", "shards-are-noise-too"): ("false as an inference", "", "If each client's part of a batch is a sample"),
    ("tdcd", "largest-over-clients-alone"): (LITERAL, "", "Read as the largest constant of all clients of all silos"),
    ("tdcd", "more-local-steps-in-time"): ("false as an inference", "", "At one small step size the text is right"),
}


@pytest.mark.parametrize(("paper", "name"), READINGS)
def test_an_erratum_begins_with_the_charitable_reading_and_quotes_the_qualifier(paper, name):
    degree, words, begins = READINGS[paper, name]
    (erratum,) = [erratum for erratum in paper_errata(paper) if erratum.id == name]
    assert erratum.degree == degree and erratum.fails.startswith(begins)
    assert not words or words in [quote.text for quote in erratum.quotes]


def test_what_refutes_no_charitable_reading_of_lemma_1_is_a_matter_of_wording():
    (slip,) = [slip for slip in paper_wording("fedmrn") if slip.id == "first-moments-for-second-moments"]
    assert [quote.text for quote in slip.quotes] == ["the variance of stochastic gradients is bounded", "squared norm"]
    assert "F.1" in slip.should and slip.id not in {erratum.id for erratum in paper_errata("fedmrn")}


def test_first_moment_errata_assume_bounded_variance_and_bounded_squares():
    """What is left of them concerns Assumption 4 alone."""
    for erratum in paper_errata("fedmrn"):
        if erratum.id.startswith("first-moment"):
            assert "first-moment-masking" in erratum.hypotheses and "bounded-gradients" in erratum.hypotheses


def test_the_erratum_on_shards_is_about_fixed_different_ones():
    (erratum,) = [erratum for erratum in paper_errata("tdcd") if erratum.id == "shards-are-noise-too"]
    assert "(8) fails for clients with fixed different shards" in erratum.fails
