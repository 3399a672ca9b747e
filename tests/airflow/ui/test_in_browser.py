"""The page in a real browser, of a real api-server, through the form that one logs in with."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from airflow_provider_nrllm.readout.page import as_html
from tests.typo3.reports import WORLD
from tests.typo3.scheduler import RealAirflow

NEWEST, EARLIER = "2026-03-08T000000Z", "2026-03-01T000000Z"
PLANTED = "<script>document.body.textContent = 'run'; top.document.title = 'run'</script>"


@pytest.fixture(scope="module")
def readouts(tmp_path_factory):
    directory = tmp_path_factory.mktemp("readouts")
    for site in ("main site", "other"):
        for folder in (NEWEST, EARLIER):
            (directory / site / folder).mkdir(parents=True)
            (directory / site / folder / "outcomes.html").write_text(as_html(WORLD) + PLANTED)
    return directory


@pytest.fixture(scope="module", params=["", "/team-a"], ids=["no prefix", "prefix"])
def airflow(request, readouts, tmp_path_factory):
    running = RealAirflow(tmp_path_factory.mktemp("airflow"), {})
    running.let_in({"viewer": "secret"})
    running.environment["AIRFLOW__NRLLM__READOUT_PATH"] = str(readouts)
    if request.param:
        running.environment["AIRFLOW__API__BASE_URL"] = f"http://127.0.0.1{request.param}"
    try:
        running.serve()
        yield running
    finally:
        running.stop()


@pytest.fixture
def logged_in(browser, airflow):
    """Open a path of Airflow, log in with the form that comes first, and return the tab."""
    contexts = []

    def opened(path, scheme):
        context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(60_000)
        contexts.append(context)
        tab = context.new_page()
        tab.goto(f"{airflow.address}/{path}")
        tab.fill("input[name=username]", "viewer")
        tab.fill("input[name=password]", "secret")
        tab.keyboard.press("Enter")
        return tab

    yield opened
    for context in contexts:
        context.close()


def brightness_of(frame):
    """Return how bright the ground of a document is, from 0 to 255 for each colour."""
    return frame.locator("body").evaluate("body => getComputedStyle(body).backgroundColor.match(/\\d+/g).map(Number)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_entry_of_the_menu_shows_the_figures_of_a_site(logged_in, airflow, scheme):
    tab = logged_in("", scheme)
    tab.get_by_role("button", name="Browse").click()
    tab.get_by_role("menuitem", name="AI outcomes").click()
    page = tab.frame_locator("iframe[title='AI outcomes']")
    page.get_by_role("link", name="main site").click()
    report = page.frame_locator("iframe")
    expect(report.get_by_role("table").first).to_be_visible(timeout=60_000)
    assert ["dark" == scheme] * 2 == [max(brightness_of(document)) < 100 for document in (page, report)]

    page.get_by_text("All readouts (2)").click()
    page.get_by_role("link", name="2026-03-01 00:00 UTC").click()
    expect(page.get_by_text("Readout up to 2026-03-01 00:00 UTC")).to_be_visible(timeout=60_000)
    expect(report.get_by_role("table").first).to_be_visible(timeout=60_000)


def test_the_page_opened_directly_comes_after_the_login_and_runs_no_planted_script(logged_in, airflow):
    tab = logged_in("nrllm/report?site=other", "light")
    expect(tab.get_by_role("table").first).to_be_visible(timeout=60_000)
    assert "run" not in (tab.title(), tab.locator("body").text_content())
