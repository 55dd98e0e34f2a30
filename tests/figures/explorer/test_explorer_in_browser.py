"""The explorer in a real browser: Chromium without a window, the page from the disk, the network off."""

import pytest

from fedbounds.figures.explorer.document import explore
from tests.browser import opened_tab, troubles

pytestmark = pytest.mark.browser
READY = "Boolean(document.querySelector('#bound *'))"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    explore(folder)
    return folder


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with opened_tab(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def page(tab, pages):
    """The page of FedAU, at the size of a desk, with nothing on the console so far."""
    tab.ask("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
    tab.events.clear()
    tab.open((pages / "fedau.html").as_uri() + "#result=fedau/theorem-2&form=sharp", READY)
    return tab


VALUE = "document.querySelector('#value').textContent"
CURVE = "[...document.querySelector('#plot canvas').toDataURL()].reduce((h, c) => (31 * h + c.charCodeAt(0)) | 0, 0)"
FOCUS = (
    "document.activeElement.id || document.activeElement.getAttribute('aria-label') || document.activeElement.tagName"
)


def test_every_page_loads_without_a_word_on_the_console_and_soon(tab, pages):
    for file in sorted(pages.glob("*.html")):
        tab.events.clear()
        tab.open(file.as_uri(), READY)
        assert tab.js(VALUE)[0] in "≤~" and tab.js("Boolean(document.querySelector('#plot canvas'))")
        ready = tab.js("performance.getEntriesByType('navigation')[0].domInteractive")
        print(f"{file.name}: {ready:.0f} ms")
        assert ready < 3000 and not troubles(tab)  # one second on a machine that has nothing else to do


def test_every_form_of_every_paper_can_be_shown(tab, pages):
    tab.events.clear()
    tab.open((pages / "index.html").as_uri(), READY)
    forms = tab.js("[...FORMS.keys()]")
    for form in forms:
        shown = tab.js(f"(choose(FORMS.get({form!r})), $('bound').textContent)")
        assert "undefined" not in shown and "no value:" not in shown, form
    assert len(forms) > 290
    assert not troubles(tab)


def test_a_slider_moves_the_bound_and_the_curve(page):
    before, curve = page.js(VALUE), page.js(CURVE)
    page.js("document.querySelector('#given input[type=range]').focus()")
    page.press("ArrowRight", "ArrowRight", "ArrowRight")
    assert page.js(VALUE) != before and page.js(CURVE) != curve
    assert not troubles(page)


def test_the_link_restores_the_state(page, pages):
    page.js("document.querySelector('#given input[type=range]').focus()")
    page.press("ArrowRight", "ArrowRight")
    page.js("document.querySelector('#assumptions input').click()")
    page.js("(state.beside = 'fedau/theorem-2[printed]', state.over = 'gamma', show())")
    page.js("($('language').value = 'link', copies())")
    state = [page.js(VALUE), page.js(CURVE), page.js("$('text').value"), page.js("$('bound').textContent")]
    address = page.js("$('text').value")
    assert address == page.js("location.href") and address.startswith("file:")
    page.open((pages / "tdcd.html").as_uri(), READY)
    page.open(address, READY)
    page.js("($('language').value = 'link', copies())")
    assert [page.js(VALUE), page.js(CURVE), page.js("$('text').value"), page.js("$('bound').textContent")] == state


def test_a_keyboard_alone_suffices(page):
    """From the top: every control is reached in turn; a form is chosen, a box ticked, a text copied."""
    reached = []
    page.js("(document.activeElement.blur(), window.scrollTo(0, 0))")
    for _ in range(150):
        page.press("Tab")
        reached.append(page.js(FOCUS))
        if reached[-1] == "text":
            break
    wanted = ["result", "form", "constant-L", "over", "beside", "language", "copy", "text"]
    assert [name for name in reached if name in wanted] == wanted
    form = page.js("$('form').value")
    page.js("$('form').focus()")
    page.press("ArrowDown")
    assert page.js("$('form').value") != form and page.js("state.form.name") == page.js("$('form').value")
    page.js("document.querySelector('#assumptions input').focus()")
    page.press(" ")
    assert page.js("assumed().length") == 1 and page.js("document.activeElement.type") == "checkbox"
    page.js("$('copy').focus()")
    page.press("Enter")
    assert page.js("$('copied').textContent") == "copied"


TYPE = "(field => {{ field.value = {1!r}; field.dispatchEvent(new Event('input')); }})(document.querySelector({0!r}))"


@pytest.mark.parametrize(("typed", "said"), [("nonsense", "is not a number"), ("-1", "is outside its domain")])
def test_what_is_typed_wrong_is_said_beside_the_field_and_leaves_no_bound(page, typed, said):
    before = page.js("$('bound').textContent")
    page.js(TYPE.format("#constant-L", typed))
    assert said in page.js("document.querySelector('#constant-L-problem').textContent")
    assert page.js("document.querySelector('#constant-L').getAttribute('aria-invalid')") == "true"
    answer = page.js("$('bound').textContent")
    assert "no value: " in answer and said in answer and "verdict" not in answer
    assert page.js("[$('terms'), $('conditions'), $('plot')].every(part => !part.children.length)")
    assert page.js("$('text').value") == ""
    page.js(TYPE.format("#constant-L", "1"))
    assert page.js("$('bound').textContent") == before and page.js("Boolean($('plot').children.length)")


def test_of_a_constant_of_the_second_form_that_is_typed_wrong_no_second_curve_is_drawn(tab, pages):
    tab.open((pages / "index.html").as_uri() + "#result=fedau/theorem-2&form=sharp", READY)
    own_fields = "document.querySelectorAll('#own input[data-symbol]')"
    beside = f"(state.beside = key, own(), {own_fields}.length)"
    fits = "comparable(state.form, f, MEASURES).ok"
    assert tab.js(f"[...FORMS].some(([key, f]) => f !== state.form && {fits} && {beside} && (refresh(), true))")
    assert "is not drawn" not in tab.js("$('caption').textContent")
    field = tab.js(f"{own_fields}[0].id")
    for typed, said in (("nonsense", "nonsense is not a number"), ("", "needs ")):
        tab.js(TYPE.format(f"#{field}", typed))
        assert f"is not drawn: {said}" in tab.js("$('caption').textContent")
    assert tab.js(VALUE)


def test_a_button_at_a_limit_takes_a_whole_constant_to_where_the_condition_holds(tab, pages):
    """The largest T at which T >= 2.44 fails is 2, so the button says 3 and goes there."""
    tab.open((pages / "fedau.html").as_uri() + "#result=fedau/theorem-1&form=repaired", READY)
    button = "[...document.querySelectorAll('#conditions td button')].find(b => b.textContent.startsWith('T at '))"
    row = f"{button}.closest('tr')"
    tab.js(TYPE.format("#constant-T", "1"))
    rows = tab.js(f"[...document.querySelectorAll('#conditions tr')].indexOf({row})")
    assert "fails" in tab.js(f"{row}.textContent")
    promised = int(tab.js(f"{button}.textContent").split()[2])
    tab.js(f"{button}.click()")
    assert tab.js("document.querySelector('#constant-T').value") == str(promised)
    for setting, word in ((promised, "holds"), (promised - 1, "fails")):
        tab.js(TYPE.format("#constant-T", str(setting)))
        assert word in tab.js(f"document.querySelectorAll('#conditions tr')[{rows}].textContent")


def test_the_curve_is_in_sight_of_the_sliders_on_a_small_desk(page):
    page.ask("Emulation.setDeviceMetricsOverride", width=1200, height=900, deviceScaleFactor=1, mobile=False)
    page.js("window.scrollTo(0, 0)")
    assert page.js("document.querySelector('#plot canvas').getBoundingClientRect().bottom") <= 900


def test_it_fits_a_narrow_screen_and_has_a_dark_side(page, tmp_path):
    light = page.js("getComputedStyle(document.body).backgroundColor")
    page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert page.js("getComputedStyle(document.body).backgroundColor") != light
    page.picture(tmp_path / "dark.png")
    page.ask("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True)
    assert page.js("document.documentElement.scrollWidth") <= 360
    page.picture(tmp_path / "narrow.png")
    page.ask("Emulation.setEmulatedMedia", features=[])


def test_what_cannot_be_compared_is_not_drawn_and_the_page_says_why(tab, pages):
    tab.open(
        (pages / "index.html").as_uri() + "#result=fedau/theorem-2&form=sharp&beside=tdcd/theorem-1%5Bprinted%5D", READY
    )
    assert "is not drawn: they bound different things" in tab.js("$('caption').textContent")
