"""Take the pictures of the docs: the report and the page in Airflow's UI, of the demo's site, and scores in MLflow."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

from playwright.sync_api import Browser, ViewportSize, sync_playwright
from sqlalchemy import create_engine

from demo.site import READOUTS, ROOT
from demo.ui import USER, served
from tests.typo3.scheduler import RealAirflow
from tests.typo3.scored import add_answered
from tests.typo3.tables import create_tables
from tests.typo3.targets import MlflowServer

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
        _take_scores(browser)
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


def _take_scores(browser: Browser) -> None:
    """Hand outcomes of two days on to a real MLflow, and show its list of traces."""
    from airflow_provider_nrllm.hooks.scores import NrLlmScoresHook

    now = int(time.time())
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "typo3.sqlite"
        engine = create_engine(f"sqlite:///{file}")
        create_tables(engine)
        for day in range(2):
            add_answered(engine, 12, 1 + 12 * day, at=now - 3600 - day * 86400)
        server = MlflowServer(Path(directory))
        os.environ["AIRFLOW_CONN_SCORED_SITE"] = json.dumps({"conn_type": "sqlite", "host": str(file)})
        os.environ["AIRFLOW_CONN_MLFLOW"] = json.dumps({"conn_type": "http", "host": server.url})
        hook = NrLlmScoresHook("scored_site", scores_conn_id="mlflow", target="mlflow")
        deque(hook.hand_on(None, now), maxlen=0)
        tab = browser.new_page(viewport={"width": 2040, "height": 760})
        tab.set_default_timeout(60_000)
        tab.goto(f"{server.url}/#/experiments/0/traces?startTimeLabel=ALL")
        # What MLflow shows to who comes for the first time.
        tab.get_by_role("button", name="Got it").click()
        tab.get_by_role("button", name="Close").last.click()
        tab.get_by_text("accepted_unchanged").first.wait_for()
        tab.screenshot(path=IMAGES / "mlflow.png", animations="disabled")
        tab.close()
        server.kill()


if __name__ == "__main__":
    main()
