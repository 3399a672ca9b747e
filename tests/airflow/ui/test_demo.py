"""``make demo`` tells what it is for on one screen; ``make demo-ui`` shows it, and leaves no process behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import expect

ROOT = Path(__file__).parent.parent.parent.parent


def demo_environment(home):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
    return {**environment, "DEMO_HOME": str(home)}


def test_the_demo_fits_on_a_screen_with_stories_and_models_and_adds_nothing_the_second_time(tmp_path):
    said = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "demo.run"],
            env=demo_environment(tmp_path / "demo"), cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout
        for _ in range(2)
    ]  # fmt: skip
    for number, screen in enumerate(said):
        assert len(screen.splitlines()) <= 30
        assert max(map(len, screen.splitlines())) <= 120 + len(str(tmp_path))
        assert "opened it and saved              edited              TYPO3 records a save without a change" in screen
        runs = [int(count) for count in re.findall(r"^larch-\w+ +(\d+)", screen, re.MULTILINE)]
        assert [21, 13] == runs
        assert f"Added now: {'nothing' if number else 34}" in screen


def processes_that_name(text):
    """Return the command lines of the processes whose environment names a text."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes())
        except OSError:
            continue  # ended meanwhile
    return found


def follow_link_of_a_task(tab, address):
    """Have the scheduler run the readout, and follow the link that the UI shows with its task."""
    runs = f"{address}/api/v2/dags/nrllm_readout/dagRuns"
    run_id = tab.request.post(runs, data={"logical_date": None}).json()["dag_run_id"]
    states = iter(lambda: tab.wait_for_timeout(500) or tab.request.get(f"{runs}/{run_id}").json()["state"], "success")
    assert "failed" not in states
    tab.goto(f"{address}/dags/nrllm_readout/runs/{run_id}/tasks/readout/details")
    link = tab.get_by_role("link", name="AI outcomes")
    expect(link).to_be_visible(timeout=60_000)
    assert f"{address}/nrllm/" == link.evaluate("link => link.href")


def test_the_demo_shows_its_readout_and_ends_all_it_started_on_ctrl_c(browser, tmp_path):
    home = tmp_path / "demo"
    demo = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "demo.ui"],
        env=demo_environment(home), cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        said = ""
        for line in demo.stdout:
            said += line
            if "Ctrl-C" in line:
                break
        address, user, password = re.search(
            r"(http://127\.0\.0\.1:\d+)/\s+user: (\S+)\s+password: (\S+)", said
        ).groups()
        tab = browser.new_page()
        tab.set_default_timeout(60_000)
        tab.goto(f"{address}/nrllm/")
        tab.fill("input[name=username]", user)
        tab.fill("input[name=password]", password)
        tab.keyboard.press("Enter")
        expect(tab.frame_locator("iframe").get_by_text("larch-large").first).to_be_visible(timeout=60_000)
        follow_link_of_a_task(tab, address)
        tab.close()
        assert [] != processes_that_name(str(home))
    finally:
        demo.send_signal(signal.SIGINT)
        demo.wait(60)
    assert [] == processes_that_name(str(home))
