"""Take the pictures of the docs: the report and the page in Airflow's UI, of the demo's site as it is today."""

from __future__ import annotations

import secrets
import shutil
import sys

from playwright.sync_api import Browser, ViewportSize, sync_playwright

from demo.site import READOUTS, ROOT
from demo.ui import USER, served
from tests.typo3.scheduler import RealAirflow

IMAGES = ROOT / "docs" / "images"
_SIZE: ViewportSize = {"width": 1280, "height": 860}


def main() -> None:
    """Write the pictures into ``docs/images``."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is not installed; on Debian: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    password = secrets.token_urlsafe(9)
    with served(password) as airflow, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"], timeout=120_000)
        _take_report(browser)
        _take_page(browser, airflow, password)
        browser.close()


def _take_report(browser: Browser) -> None:
    tab = browser.new_page(viewport=_SIZE)
    tab.goto((READOUTS / "main" / "latest" / "outcomes.html").as_uri())
    tab.screenshot(path=IMAGES / "report.png")
    tab.close()


def _take_page(browser: Browser, airflow: RealAirflow, password: str) -> None:
    context = browser.new_context(viewport=_SIZE)
    context.set_default_timeout(60_000)
    tab = context.new_page()
    tab.goto(f"{airflow.address}/")
    tab.fill("input[name=username]", USER)
    tab.fill("input[name=password]", password)
    tab.keyboard.press("Enter")
    tab.get_by_role("button", name="Browse").click()
    tab.get_by_role("menuitem", name="AI outcomes").click()
    report = tab.frame_locator("iframe[title='AI outcomes']").frame_locator("iframe")
    report.get_by_role("table").first.wait_for()
    tab.screenshot(path=IMAGES / "page.png")
    context.close()


if __name__ == "__main__":
    main()
