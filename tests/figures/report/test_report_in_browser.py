"""Reports in a real browser: Chromium without a window, the page from the disk, the network off."""

import pytest

import fedbounds
from fedbounds.figures.report.papers import report_paper
from tests.browser import opened_tab, troubles

pytestmark = pytest.mark.browser
SPEC = """
name = "small"
rounds = 30
seeds = 2
problem = { kind = "quadratic", clients = 3, dimension = 2, noise = 0.1, initial_gap = 2.0 }
participation = { kind = "bernoulli", clients = 3, probability = 0.8, normalize = false }
[algorithm]
kind = "fedau"
local_step_size = 1e-3
local_steps = 2
server_multiplier = 5.0
cutoff = 2
"""
CONTRAST = """(() => {
  const light = c => { const v = c.match(/[0-9.]+/g).slice(0, 3).map(x => x / 255)
    .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  return ['p', 'td', 'th', 'a', '.yes', '.no', 'figcaption p', 'caption', 'math'].map(where => {
    const ink = light(getComputedStyle(document.querySelector('main ' + where)).color);
    return [where, (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05)]; });
})()"""
WIDER = """[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth
  && !e.closest('.wide, .inline, pre, details:not([open])')).map(e => e.outerHTML.slice(0, 200))"""
STUCK = "[...document.querySelectorAll('.wide')].filter(e => e.tabIndex < 0).length"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A report on runs and one on a paper."""
    folder = tmp_path_factory.mktemp("reports")
    (folder / "small.toml").write_text(SPEC)
    words = [str(folder / "small.toml"), "--results", str(folder / "results"), "--out", str(folder / "runs")]
    assert fedbounds.main(["report", *words]) == 0
    report_paper("fedau", folder / "paper")
    return [folder / "runs" / "index.html", folder / "paper" / "index.html"]


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with opened_tab(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_loads_in_silence_fits_its_screen_and_can_be_read(tab, pages, width, scheme):
    tab.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    tab.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    for page in pages:
        tab.events.clear()
        tab.open(page.as_uri())
        tab.js("document.querySelectorAll('img').forEach(image => image.loading = 'eager')")
        tab.js("Promise.all([...document.images].map(image => image.decode()))")
        assert tab.js("[...document.images].filter(image => !image.naturalWidth).length") == 0
        assert not troubles(tab)
        assert tab.js("document.documentElement.scrollWidth") <= width, tab.js(WIDER)
        assert tab.js(STUCK) == 0  # what is wider than the screen scrolls by keyboard
        assert not [pair for pair in tab.js(CONTRAST) if pair[1] < 4.5]


def test_a_keyboard_alone_skips_to_the_content_and_opens_what_is_folded(tab, pages):
    tab.open(pages[0].as_uri())
    tab.press("Tab")
    assert tab.js("document.activeElement.className") == "skip"
    assert tab.js("document.activeElement.getBoundingClientRect().left") >= 0
    tab.press("Enter")
    assert tab.js("location.hash") == "#content"
    folded = "document.querySelector('details:not([open]) > summary')"
    tab.js(f"(window.one = {folded}, one.focus(), 0)")
    tab.press("Enter")
    assert tab.js("one.parentElement.open")
