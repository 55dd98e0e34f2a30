"""Which theorems cover a setting: by the assumptions that each declares, and by nothing else."""

import csv
import io
import json
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import pairwise
from pkgutil import walk_packages

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedbounds
from fedbounds.bounds.advice.coverage import NO_SCOPE, coverage, covers, stated_assumptions
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory import assumptions as common
from fedbounds.bounds.theory.assumptions import FULL_PARTICIPATION, SMOOTH, Assumption
from fedbounds.bounds.theory.problem_class import ASKED, ProblemClass, box, phrases, where
from fedbounds.bounds.theory.problem_class_terms import AXES, GROUPS
from fedbounds.bounds.theory.registry import PAPERS, REFERENCES, load, paper, paper_module
from fedbounds.bounds.theory.theorem_file import build_theorem, read_theorem_file
from tests.command_line import run

STRONGER = {name: axis.special_cases for name, axis in AXES.items()}  # whoever knows a kind knows the next as well


def of_modules():
    """Every assumption that a module of the kernel or of a paper package of ours defines, with its place."""
    modules = [common]
    for name in PAPERS:
        own = paper_module(name)
        found = walk_packages(own.__path__, f"{own.__name__}.")
        modules += [own, *(import_module(one.name) for one in found if ".proof" not in one.name)]
    for module in modules:
        yield from ((module.__name__, x) for x in vars(module).values() if isinstance(x, Assumption))


def of_forms():
    for result in fedbounds.results():
        if result.paper in PAPERS:
            for form in result.forms:
                yield from ((f"{result.key} [{form.name}]", a) for a in (*paper(result.paper).scope, *form.assumptions))


def test_cyclic_participation_is_a_phrase():
    assert ProblemClass.of("cyclic participation").said == {"participation": ("cyclic",)}


@cache
def every_assumption():
    return {assumption: place for place, assumption in (*of_modules(), *of_forms())}


def kinds(name):
    return st.sets(st.sampled_from(list(AXES[name].kinds)), min_size=1)


SETTINGS = st.fixed_dictionaries({}, optional={name: kinds(name) for name in AXES}).map(ProblemClass)


def test_every_assumption_of_every_paper_says_which_settings_it_covers():
    assert len(every_assumption()) > 60
    assert not [f"{place}: {a.name}" for a, place in every_assumption().items() if a.cover is None]
    assert all(paper(name).scope for name in PAPERS)


def test_an_assumption_that_no_setting_meets_is_one_that_is_not_stated_here():
    assert {a.name for a in every_assumption() if a.cover.levels().max() == 0} == {"cited"}


@pytest.mark.parametrize("name", STRONGER)
def test_who_knows_more_meets_no_assumption_less(name):
    everywhere = {other: list(axis.kinds) for other, axis in AXES.items()}
    for assumption in every_assumption():
        for chain in STRONGER[name]:
            for strong, weak in pairwise(chain):
                at = [assumption.cover.level(ProblemClass({**everywhere, name: [kind]})) for kind in (strong, weak)]
                assert at[0] >= at[1], (assumption.name, strong, weak)


@settings(max_examples=6, deadline=None)
@given(SETTINGS, st.data())
def test_a_setting_that_is_reported_more_exactly_takes_no_answer_back(vague, data):
    name = data.draw(st.sampled_from(list(AXES)))
    kept = data.draw(st.sets(st.sampled_from(vague.kinds(name)), min_size=1))
    exact = ProblemClass({**vague.said, name: tuple(kept)})
    for before, after in zip(covers(vague).forms, covers(exact).forms, strict=True):
        assert before.answer in ("if", after.answer), (before.key, before.form)
        assert set(before.excluded) <= set(after.excluded) or before.answer != "not covered"


@settings(max_examples=6, deadline=None)
@given(SETTINGS)
def test_the_kinds_that_are_left_open_are_those_that_are_covered(setting):
    rows = [row for row in covers(setting).forms if row.answer == "if"][::9]
    for row in rows:
        scope = paper(row.key.partition("/")[0]).scope
        form = load(row.key).form(row.form)
        for name, left in row.only_if.items():
            for kind in setting.kinds(name):
                there = coverage(load(row.key), form, scope, ProblemClass({**setting.said, name: (kind,)}))
                assert (there.answer != "not covered") == (kind in left), (row.key, row.form, name, kind)


# What the papers say, read in the PDFs: the answer of each result to a setting.
KNOWN = "non-convex, bounded heterogeneity, bounded variance, local steps, gradients=bounded"
BY_PAPER = [
    ("full participation", {"arbitrary-participation/theorem-3.1": "covered", "fedau/theorem-2": "covered",
                            "fedmrn/theorem-2": "covered", "fed-norm-sgda/theorem-1": "not covered",
                            "tdcd/theorem-1": "covered", "fedmrn/theorem-1": "not covered"}),
    ("uniform sampling", {"arbitrary-participation/corollary-4.8": "covered", "fedau/theorem-2": "not covered",
                          "fedmrn/theorem-2": "covered", "arbitrary-participation/corollary-4.3": "not covered",
                          "tdcd/theorem-1": "not covered"}),
    ("unknown rates", {"fedau/corollary-4": "covered", "fedau/appendix-a.3-unequal": "not covered",
                       "fedmrn/theorem-2": "not covered"}),
    ("known rates", {"fedau/appendix-a.3-unequal": "covered", "fedmrn/theorem-2": "not covered"}),
    ("periodic", {"arbitrary-participation/corollary-4.3": "covered", "fedau/theorem-2": "not covered",
                  "arbitrary-participation/corollary-4.8": "not covered"}),
    ("arbitrary participation", {"arbitrary-participation/theorem-3.1": "covered", "fedau/theorem-2": "not covered",
                                 "arbitrary-participation/corollary-4.8": "not covered"}),
    ("chosen by loss", {"arbitrary-participation/theorem-3.1": "not covered", "fedau/theorem-2": "not covered"}),
    ("vertical, full participation", {"tdcd/theorem-1": "covered", "arbitrary-participation/theorem-3.1": "not covered",
                                      "fedmrn/theorem-2": "not covered"}),
    ("masks, uniform sampling", {"fedmrn/theorem-2": "covered", "fedmrn/theorem-1": "not covered",
                                 "arbitrary-participation/theorem-3.1": "not covered"}),
    ("top-k, full participation", {"fedmrn/theorem-2": "not covered", "tdcd/theorem-1": "not covered"}),
]  # fmt: skip


@pytest.mark.parametrize(("said", "expected"), BY_PAPER, ids=[said for said, _ in BY_PAPER])
def test_the_answers_are_those_of_the_papers(said, expected):
    found = covers(f"{KNOWN}, {said}")
    assert {key: found.of(key).answer for key in expected} == expected


def test_minimax_settings_are_those_of_sharma_et_al():
    found = covers(
        "minimax, strongly concave, uniform sampling, unequal local steps, relative dissimilarity, growing noise"
    )
    assert {row.key.partition("/")[0] for row in found.with_answer("covered") if row.of_a_run} == {"fed-norm-sgda"}
    assert found.of("fed-norm-sgda/theorem-1").answer == "covered"
    assert found.of("fed-norm-sgda/remark-1").answer == "not covered"  # equal local steps
    assert found.of("fed-norm-sgda/theorem-4").only_if == {"gradients": ("bounded",)}


AVERAGES = ("", "fedavg", "generalized-fedavg", "minibatch-sgd", "local-sgda", "synchronous-sgda", "c-vfl")
OTHER_METHODS = [
    one
    for one in (read_theorem_file(result.file) for name in REFERENCES for result in paper(name).results)
    if one.algorithm not in AVERAGES
]


@pytest.mark.parametrize("file", OTHER_METHODS, ids=lambda file: file.result.key)
def test_a_theorem_about_another_method_covers_no_run_of_averaging(file):
    plain = {"server": ("averaging",), "local-optimizer": ("sgd",)}
    row = coverage(file.result, file.result.form(), (), ProblemClass({**file.setting.said, **plain}))
    assert row.answer == "not covered" and row.about == f"about {file.algorithm}"
    assert {a.name for a in row.excluded} <= {"setting-server", "setting-local-optimizer"}


def test_the_algorithm_of_a_file_says_what_its_server_does():
    text = {"setting": "non-convex, full participation", "measure": "last over rounds of function gap"}
    for algorithm, server in (("scaffold", "control-variates"), ("fedadam", "adaptive"), ("mifa", "memory")):
        made = build_theorem({**text, "key": "draft/x", "terms": {"a": "F"}, "algorithm": algorithm}, "x.toml")
        assert made.setting.said["server"] == (server,)
    made = build_theorem({**text, "key": "draft/x", "terms": {"a": "F"}, "algorithm": "fedavg"}, "x.toml")
    assert "server" not in made.setting.said


def test_a_theorem_that_is_not_about_fedavg_names_its_method():
    setting = "non-convex, unbounded heterogeneity, full participation, local steps, bounded variance"
    out = run("covers", f"{setting}, server=averaging")[1].partition("Not covered")[0]
    assert "scaffold" not in out and "mifa" not in out
    out = run("covers", f"{setting}, any server")[1].partition("Not covered")[0]
    assert "scaffold-nonconvex [printed, order only]   about scaffold\n" in out and "if server: memory" in out
    assert "gu-2021/mifa [printed] (about mifa; order only)" in run("table", "--class", f"{setting}, stored updates")[1]
    plain = "non-convex, bounded heterogeneity, full participation, local steps, bounded variance"
    assert "   about " not in run("covers", plain, "--paper", "yang-2021")[1].partition("Not covered")[0]


def test_a_lower_bound_about_every_method_holds_whatever_the_server_does():
    setting = "non-convex, unbounded heterogeneity, full participation, local steps, bounded variance, scaffold"
    assert covers(setting).of("arjevani-2023/lower-bound-bounded-variance").answer == "covered"


def test_a_refuted_form_covers_nothing_and_says_why():
    found = covers("strongly convex, uniform sampling, heavy-tailed, bounded gradients, local steps")
    printed = found.of("fedmrn/theorem-1", "printed")
    assert [a.name for a in printed.excluded] == ["unbiased-noise", "refuted"]
    assert printed.excluded[1].statement.split()[2] == "first-moments-in-theorem-1"
    assert [a.name for a in found.of("fedmrn/theorem-1", "sharp").excluded] == ["unbiased-noise"]


def test_heterogeneity_without_bound_is_covered_where_no_drift_remains():
    """With everybody, one local step and no window (6) is not needed, and (5) and (7) hold with 0."""
    found = covers("non-convex, full participation, unbounded heterogeneity, bounded variance, one local step")
    assert found.of("arbitrary-participation/theorem-3.1", "explicit:I=P=1").answer == "covered"
    assert [a.name for a in found.of("arbitrary-participation/theorem-3.1", "sharp").excluded] == ["cohort-divergence"]


def test_assumptions_that_exclude_one_another_are_named_together():
    """Each may hold in what is possible, and no setting meets both."""
    theorem = load("arbitrary-participation/theorem-3.1")
    two = [Assumption(n, "", "", True, where(box(participation=n))) for n in ("all", "cyclic")]
    form = replace(theorem.form("sharp"), assumptions=tuple(two))
    row = coverage(theorem, form, (FULL_PARTICIPATION,), ProblemClass({"participation": ("cyclic", "ergodic")}))
    assert [a.name for a in row.excluded] == ["full-participation", "all"]
    row = coverage(theorem, form, (), ProblemClass.of("non-convex"))
    assert row.answer == "not covered" and [a.name for a in row.excluded] == ["all", "cyclic"]


def test_a_paper_that_says_nothing_of_participation_is_about_all_clients():
    lemma = load("fedau/lemma-b.3.1")
    assumed = stated_assumptions(lemma, lemma.form(), ())
    assert [a.cover for a in assumed if a.participation] == [FULL_PARTICIPATION.cover]


def test_an_outside_package_who_classifies_nothing_is_answered_for_by_the_user():
    theorem = load("arbitrary-participation/theorem-3.1")
    form = replace(theorem.form("sharp"), assumptions=(Assumption("odd", "something", "A1"), SMOOTH))
    row = coverage(theorem, form, (NO_SCOPE,), ProblemClass.of("full participation, local steps"))
    assert row.answer == "covered" and [a.name for a in row.you] == ["scope", "odd"]
    assert ASKED.level(ProblemClass({})) == 1


# --- Words ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Non-Convex; NonConvex, non convex", {"objective": ("non-convex",)}),
        ("partial participation with unknown rates", {"participation": ("coins-unknown-rates",)}),
        ("bernoulli", {"participation": ("coins-known-rates", "coins-unknown-rates")}),
        ("nonconvex strongly-concave", {"objective": ("non-convex",), "ascent": ("strongly-concave",)}),
        ("our clients are sampled uniformly without replacement", {"participation": ("uniform-sampling",)}),
        ("local-steps = alike or one", {"local-steps": ("one", "alike")}),
        ("vertical and masks", {"partition": ("vertical",), "compression": ("masks",)}),
        ("", {}),
    ],
)
def test_settings_are_read_as_people_write_them(text, expected):
    assert ProblemClass.of(text).said == expected


def test_a_setting_reads_back_from_its_own_text():
    setting = ProblemClass.of("non-convex, bernoulli, non-iid, unequal local steps")
    assert ProblemClass.of(setting.text) == setting


def test_every_phrase_means_one_thing_and_is_found_by_itself():
    for axis in AXES.values():
        for kind in axis.kinds.values():
            for phrase in (*kind.phrases, f"{axis.name}={kind.name}"):
                assert ProblemClass.of(phrase).said == {axis.name: (kind.name,)}, phrase
    assert all(ProblemClass.of(phrase).said[name] == tuple(ProblemClass({name: listed.split()}).said[name])
               for phrase, (name, listed) in GROUPS.items())  # fmt: skip
    assert len(phrases()) > 150


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("unknwon rates", "did you mean unknown rates"),
        ("quantum", "unknown property of a setting 'quantum'"),
        (
            "bounded gradient dissimilarity",
            "'bounded gradient dissimilarity'; did you mean bounded dissimilarity (hetero",
        ),
        ("bounded gradient dissimilarity", "or gradient dissimilarity (heterogeneity: at most a constant plus"),
        ("iid, non-iid", "contradicts itself: 'noniid' after 'iid'"),
        ("participation=alll", "did you mean all?"),
        ("participants=all", "did you mean participation"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(text, part):
    with pytest.raises(FedboundsError) as refused:
        covers(text)
    assert part in str(refused.value) and "\n" not in str(refused.value)


def test_the_command_tells_what_covers_what_would_and_what_does_not(tmp_path):
    status, out, err = run("covers", "non-convex,", "unknown", "rates,", "bounded", "heterogeneity")
    assert (status, err) == (0, "")
    assert "by default     ascent none, partition horizontal, compression none, local-optimizer sgd" in out
    assert "not specified  local-steps, noise, gradients" in out
    body = out.partition("Covered if more is known")[2]
    assert "fedau/corollary-4 [sharp]" in body.partition("Not covered")[0]
    assert "by minimax, uniform-sampling, strongly-concave: theorem-1," in body.partition("Not covered")[2]
    assert "lemma-c.1" not in out
    assert "fedau/lemma-b.3.2" in run("covers", "full participation", "--all")[1]

    status, out, err = run(
        "covers", "full participation", "--json", "--paper", "tdcd", "--out", str(tmp_path / "t.csv")
    )
    document = json.loads(out)
    assert status == 0 and document["schema"] == "fedbounds.covers/1"
    assert {row["key"].partition("/")[0] for row in document["forms"]} == {"tdcd"}
    table = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text(encoding="utf-8"))))
    assert [row["answer"] for row in table] == [row["answer"] for row in document["forms"]]


def test_without_words_the_command_lists_what_can_be_said():
    status, out, _ = run("covers")
    assert status == 0 and all(kind in out for axis in AXES.values() for kind in axis.kinds)
    assert json.loads(run("covers", "--json")[1])["axes"]["participation"]["all"]


def test_bad_words_and_bad_files_are_refused():
    for words, part in ((("covers", "quantum"), "quantum"), (("covers", "iid", "--out", "t.txt"), "ends in .csv"),
                        (("covers", "iid", "--paper", "fedaw"), "did you mean fedau")):  # fmt: skip
        status, out, err = run(*words)
        assert (status, out) == (2, "") and part in err


def test_a_phrase_may_stand_for_the_kinds_of_an_axis():
    assert ProblemClass.of("participation=without-replacement").said == ProblemClass.of("without replacement").said
    with pytest.raises(FedboundsError, match="unknown kind of participation 'non-convex'"):
        ProblemClass.of("participation=non-convex")
