"""An outside package is furnished like our paper packages: its runs, instances and figures are found by its name."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fedbounds.bounds.audit.claim_set import ClaimSet
from fedbounds.bounds.theory import registry
from fedbounds.bounds.theory.registry import GROUP, load, paper_submodule
from fedbounds.cli.figures import figure
from fedbounds.command_line import main
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.falsification.instances import instance_checker as judging
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.problems import toy_example
from fedbounds.empirical.simulation.moments import moments

ROOM = {
    "__init__": """
from dataclasses import replace
from fedbounds.bounds.theory.registry import load
REFERENCE, BIBTEX = "A draft", "@misc{draft}"
RESULTS = (replace(load("arbitrary-participation/theorem-3.1"), key="draft/theorem-1"),)
""",
    "run": "from fedbounds.empirical.papers.arbitrary_participation.run import RUNS\n",
    "instances": """
import numpy as np
from fedbounds.empirical.falsification.instances.sides import Sides, InstanceTest
HALF = Sides(np.ones((5, 1)), {"all": np.full((5, 1), 2.0)}, np.ones((5, 1), dtype=bool))

def instance_test(claim):
    return InstanceTest(lambda claim, cells: [np.zeros(5)], lambda claim, z: HALF) if claim.kind == "result" else None
""",
    "drawing": """
from fedbounds.figures.charts.curves import Curve, panels
from fedbounds.figures.charts.paper_gallery import PaperGallery

class Gallery(PaperGallery):
    scale_of = staticmethod(lambda dataset, network, full: "small")

def line(gallery):
    curve = Curve("line", [1.0, 2.0], [1.0, 2.0])
    words = {"title": "A line", "caption": "A line.", "alternative": "A line."}
    return panels({"": [curve]}, x_label="x", y_labels=["y"], **words)

FIGURES = {"figure-1": line}
""",
}


@pytest.fixture
def draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `its_draft` that joins through one entry point, with a submodule for all that a paper may hold."""
    folder = tmp_path / "its_draft"
    folder.mkdir()
    for name, text in ROOM.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.split(".")[0] == "its_draft"]:
        monkeypatch.delitem(sys.modules, name)
    importlib.invalidate_caches()
    monkeypatch.setattr(registry, "_installed_papers", lambda: {"draft": EntryPoint("draft", "its_draft", GROUP)})
    for remembered in (registry.paper, registry.statements, judging.paper_instances):
        remembered.cache_clear()
    yield folder
    for remembered in (registry.paper, registry.statements, judging.paper_instances):
        remembered.cache_clear()


def test_an_outside_package_says_what_its_results_must_be_reported_of_a_run(draft: Path) -> None:
    run = moments(GeneralizedFedAvg(1 / 36, 1, 6, 3), toy_example(), np.tile(np.eye(3), (10, 1)), 30)
    theirs, ours = (
        confront(run, key, trust=[key]) for key in ("draft/theorem-1", "arbitrary-participation/theorem-3.1")
    )
    assert theirs.guarantee and theirs.bound.tolist() == ours.bound.tolist()
    assert not confront(run, "draft/theorem-1").guarantee  # nobody has proved it


def test_an_outside_packages_instances_try_its_claims_and_no_others(draft: Path) -> None:
    claim_set = ClaimSet.of("draft")
    verdict = claim_set.verdict("draft/theorem-1[explicit]")
    assert (verdict.outcome, verdict.checker) == (
        "survived",
        "instances",
    ) and "worst measured/bound 0.5" in verdict.evidence
    claim = claim_set.claims["draft/theorem-1[explicit]"]
    assert not judging.has_instances(claim_set.claims["draft/theorem-1[explicit]/units"])
    assert not judging.has_instances(replace(claim, id="nobody/theorem-1[explicit]"))


def test_an_outside_packages_figures_are_drawn_by_name(draft: Path, tmp_path: Path) -> None:
    out = tmp_path / "drawn" / "line.png"
    kept = ["--results", str(tmp_path / "results")]
    done = CliRunner().invoke(figure, ["draft/figure-1", "--out", str(out), *kept])
    assert done.exit_code == 0 and out.exists(), done
    every = CliRunner().invoke(
        figure, ["draft", "--out", str(tmp_path / "all"), "--results", str(tmp_path / "results")]
    )
    assert every.exit_code == 0 and (tmp_path / "all" / "figure-1.png").exists(), every
    wrong = CliRunner().invoke(figure, ["draft/figure-2", "--out", str(out)])
    assert "figure-1" in str(wrong.exception)


def test_a_paper_that_draws_nothing_has_no_figures(draft: Path, tmp_path: Path) -> None:
    (draft / "drawing.py").unlink()
    done = CliRunner().invoke(figure, ["draft/figure-1", "--out", str(tmp_path / "x.png")])
    assert "unknown figure 'draft/figure-1'" in str(done.exception)
    assert paper_submodule("draft", "figures", "drawing") is None and load("draft/theorem-1").paper == "draft"


def test_a_package_of_theorem_files_needs_no_code(draft: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in draft.iterdir():
        file.unlink()
    (draft / "__init__.py").write_text("")
    (draft / "theorem-1.toml").write_text(
        """
        key = "draft/theorem-1"
        title = "Gradient descent"
        measure = "minimum over rounds of squared gradient norm of f"
        terms = { "initial gap" = "2*F/(gamma*T)" }
        conditions = ["gamma <= 1/L"]
        """
    )
    assert main(["eval", "draft/theorem-1", "L=1", "F=1", "gamma=0.5", "T=10"]) == 0
    assert main(["list", "--paper", "draft"]) == 0
    assert "<= 0.4" in (printed := capsys.readouterr().out) and "Gradient descent" in printed
