"""The page of a readout in a real browser: at each width, light and dark, on paper, and for those who cannot see it."""

from __future__ import annotations

import base64
import re
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import axe_playwright_python
import pytest
from pypdfium2 import PdfDocument

from airflow_provider_nrllm.readout.counts import together
from airflow_provider_nrllm.readout.page import as_html
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.runs import LinkTemplate, RunsShown, runs_tables
from tests.typo3.reports import AUDIT, NAMES, RUNS, WORLD, over_time, readout

MONDAY = date(2026, 3, 2)

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")

#: Counts the pixels of each colour in a screenshot.
PIXELS = """
async ([png, colours]) => {
    const image = await createImageBitmap(await (await fetch(png)).blob());
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const pixels = new Uint32Array(canvas.getImageData(0, 0, image.width, image.height).data.buffer);
    // A pixel is red, green, blue and opacity, the least significant byte first.
    const wanted = new Map(colours.map(colour =>
        [(0xff000000 | parseInt(colour.slice(1).match(/../g).reverse().join(""), 16)) >>> 0, colour]));
    const seen = Object.fromEntries(colours.map(colour => [colour, 0]));
    for (const pixel of pixels) {
        if (wanted.has(pixel)) seen[wanted.get(pixel)] += 1;
    }
    return seen;
}
"""

#: The smallest text of the pictures in pixels.
SMALLEST_TEXT = """
() => Math.min(...[...document.querySelectorAll("figure, figure *")]
    .filter(element => [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
    .map(element => parseFloat(getComputedStyle(element).fontSize)
        * (element.ownerSVGElement ? element.getScreenCTM().a : 1)))
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The page as a file."""
    path = tmp_path_factory.mktemp("page") / "outcomes.html"
    shown = RunsShown()
    for run in RUNS:
        shown.add(run)
    link = LinkTemplate.of("https://www.example.org/typo3/record/edit?edit[{table}][{uid}]=edit")
    path.write_text(as_html(WORLD, runs_tables(shown, WORLD.grouping, link)), "utf-8")
    return path


@pytest.fixture
def opened(browser, file):
    """Open the page at a width, light or dark."""
    contexts = []

    def opened(width, scheme="light", **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        contexts.append(context)
        page = context.new_page()
        page.goto(file.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


def is_wider_than_its_place(page, selector):
    return page.eval_on_selector_all(selector, "found => found.map(each => each.scrollWidth > each.clientWidth)")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_mend(opened, width, scheme):
    # The page lets no script run, so axe has to be let past its policy.
    page = opened(width, scheme, bypass_csp=True)
    page.evaluate(AXE)
    found = page.evaluate("axe.run()")
    assert [] == [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]]
    # A check that found nothing to look at has not looked.
    assert {"color-contrast", "document-title", "svg-img-alt"} <= {each["id"] for each in found["passes"]}


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_as_wide_as_the_window(opened, width):
    assert width == opened(width).evaluate("document.documentElement.scrollWidth")


@pytest.mark.parametrize("width", [390, 1280])
def test_text_in_pictures_is_at_least_11_pixels_high(opened, width):
    assert 11 <= opened(width).evaluate(SMALLEST_TEXT)


def test_at_1280_pixels_every_table_is_whole(opened):
    whole = is_wider_than_its_place(opened(1280), ".scroll")
    assert [False] * len(whole) == whole
    assert len(whole) > 10


def test_at_390_pixels_the_figures_scroll_and_the_names_and_the_caption_stay(opened):
    page = opened(390)
    assert True in is_wider_than_its_place(page, ".scroll")
    places = """
        selector => [...document.querySelectorAll(selector)].map(each => Math.round(each.getBoundingClientRect().left))
    """
    before = [page.evaluate(places, selector) for selector in ("caption span", "th:first-child", "td:last-child")]
    page.evaluate("document.querySelectorAll('.scroll').forEach(each => each.scrollLeft = 9999)")
    after = [page.evaluate(places, selector) for selector in ("caption span", "th:first-child", "td:last-child")]
    assert before[:2] == after[:2]
    assert before[2] != after[2]
    # The caption is whole, too.
    widths = page.eval_on_selector_all("caption span", "found => found.map(each => each.getBoundingClientRect().right)")
    assert max(widths) <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_value_is_drawn_in_its_colour(opened, scheme):
    page = opened(1280, scheme, bypass_csp=True)
    colours = page.evaluate("""
        names => names.map(name => getComputedStyle(document.documentElement).getPropertyValue("--" + name))
    """, ["helpful", "not_helpful", "accepted_unchanged", "edited", "discarded", "unknown", "page"])  # fmt: skip
    colours = [re.sub("^#(.)(.)(.)$", r"#\1\1\2\2\3\3", colour) for colour in colours]
    png = "data:image/png;base64," + base64.b64encode(page.screenshot(full_page=True)).decode()
    assert [] == [colour for colour, seen in page.evaluate(PIXELS, [png, colours]).items() if seen < 500]
    assert 7 == len({*colours})


def test_light_and_dark_differ_on_the_screen_and_not_on_paper(opened):
    background = "getComputedStyle(document.body).backgroundColor"
    page = opened(1280, "dark")
    assert "rgb(255, 255, 255)" != page.evaluate(background)
    page.emulate_media(media="print")
    assert "rgb(255, 255, 255)" == page.evaluate(background)
    assert "rgb(255, 255, 255)" == opened(1280).evaluate(background)


def test_the_page_is_whole_in_a_sandboxed_frame_under_a_strict_policy(browser, file):
    policy = (
        "sandbox allow-downloads; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'self'"
    )
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.on("requestfailed", lambda request: refused.append(request.url))
    headers = {"Content-Security-Policy": policy, "Content-Type": "text/html; charset=utf-8"}
    page.route("http://localhost/page", lambda route: route.fulfill(headers=headers, body=file.read_text("utf-8")))
    frame = '<iframe src="/page" sandbox="allow-scripts allow-same-origin allow-downloads" width="1280" height="900">'
    page.route("http://localhost/", lambda route: route.fulfill(content_type="text/html", body=frame))
    page.goto("http://localhost/")
    inside = page.frames[1]
    assert "rgb(0, 158, 115)" == inside.eval_on_selector(".dot", "dot => getComputedStyle(dot).fill")
    assert {*NAMES} <= {*inside.locator("bdi").all_text_contents()}
    assert [] == refused
    context.close()


@pytest.mark.parametrize("groups", [3, 40])
def test_on_paper_no_page_is_half_empty(browser, tmp_path, groups):
    weeks = [MONDAY + timedelta(weeks=week) for week in range(13)]
    world = [over_time(f"model {n}", dict.fromkeys(weeks, ((n, 9), (n, 3, 2, 1))), AUDIT) for n in range(groups)]
    text = as_html(readout(world, together(each.periods for each in world), audited=True, width=PeriodWidth.WEEK))
    page = browser.new_page()
    page.set_content(text)
    page.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True)
    page.close()
    with closing(PdfDocument(tmp_path / "page.pdf")) as document:
        assert len(document) > 1
        # Places are counted from the foot of the page; that of the last page does not matter.
        feet = [_foot(sheet) / sheet.get_height() for sheet in document]
    assert [] == [foot for foot in feet[:-1] if foot >= 0.4]


def _foot(sheet):
    with closing(sheet.get_textpage()) as lines:
        return min(lines.get_rect(line)[1] for line in range(lines.count_rects()))
