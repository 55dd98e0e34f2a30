"""The site: formulas are MathML in the pages, and nothing is fetched when they are read."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from fedbounds.bounds.comparability import comparability_matrix
from fedbounds.bounds.vocabulary import AXES

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location("mathml", ROOT / "docs" / "hooks" / "mathml.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_formula_in_a_page_becomes_mathml_and_the_rest_stays(hook):
    page = r'<p>at <span class="arithmatex">\(\gamma \lt 1\)</span></p><div class="arithmatex">\[\frac{F}{T}\]</div>'
    typeset = hook.on_page_content(page, page=None, config=None, files=None)
    assert re.fullmatch(r'<p>at <span class="arithmatex"><math .*</math></span></p><div class.*</math></div>', typeset)
    assert typeset.count('display="inline"') == typeset.count('display="block"') == 1
    assert "<mfrac><mrow><mi>F</mi></mrow><mrow><mi>T</mi></mrow></mfrac>" in typeset and "\\" not in typeset


def test_a_command_that_has_no_mathml_stops_the_build(hook):
    with pytest.raises(ValueError, match=r"no MathML for \\gama in"):
        hook.on_page_content(r'<span class="arithmatex">\(\gama_1\)</span>')


def test_no_page_fetches_a_script_a_style_or_a_font():
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "://" not in config and re.search(r"^  font: false", config, re.MULTILINE)


@pytest.mark.parametrize("paper", [path.name for path in (ROOT / "docs" / "gallery").iterdir() if path.is_dir()])
def test_the_gallery_page_shows_every_figure_and_every_claim_of_a_paper(paper):
    spec = importlib.util.spec_from_file_location("modules", ROOT / "docs" / "hooks" / "modules.py")
    assert spec is not None and spec.loader is not None
    modules = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(modules)
    page = modules.on_page_markdown(f"# Gallery\n\n::: claims {paper}\n\n::: gallery {paper}\n")
    folder = ROOT / "docs" / "gallery" / paper
    assert page.count("](gallery/") == len(list(folder.glob("*.png"))) > 0
    ends = re.compile(r"\| (agrees|disagrees|inconclusive(: .* would tell)?) \|$")
    verdicts = [line for line in page.splitlines() if ends.search(line)]
    assert len(verdicts) == len((folder / "claims.csv").read_text(encoding="utf-8").splitlines()) - 1
    assert f"::: claims {paper}" in (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")


def test_the_page_on_settings_lists_every_kind_and_every_left_hand_side_of_a_run() -> None:
    spec = importlib.util.spec_from_file_location("modules", ROOT / "docs" / "hooks" / "modules.py")
    assert spec is not None and spec.loader is not None
    modules = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(modules)
    page = modules.on_page_markdown((ROOT / "docs" / "covers.md").read_text(encoding="utf-8"))
    assert "::: " not in page
    assert all(f"| `{kind}` |" in page for axis in AXES.values() for kind in axis.kinds)
    measures = comparability_matrix().of_runs().measures
    assert all(f"| {i} | {measure}" in page.replace("\\", "") for i, measure in enumerate(measures, start=1))
