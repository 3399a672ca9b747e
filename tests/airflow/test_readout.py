"""The readout and the audit as Airflow runs them, with what they write, and the page in a real browser."""

from __future__ import annotations

import csv
import json
import logging
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import ObjectStoragePath

from airflow_provider_nrllm.exceptions import NrLlmExtraError, NrLlmPartitionError
from airflow_provider_nrllm.operators.audit import NrLlmEditedAuditOperator
from airflow_provider_nrllm.operators.readout import NrLlmOutcomeReadoutOperator
from tests.readouts import CRAB, DAY, FORMULA, LONG, MARCH, QUOTES, ROCKET, SCRIPT, calls, outcome

START = datetime.fromtimestamp(MARCH, UTC)
END = START + timedelta(days=10)
NAMES = [QUOTES, SCRIPT, ROCKET, CRAB, LONG, FORMULA, "$x^2$ &amp; _a_\n# no heading"]


def operator(site, **arguments):
    defaults = {"interval_start": START, "interval_end": END}
    return NrLlmOutcomeReadoutOperator(task_id="readout", nrllm_conn_id=site.conn_id, **{**defaults, **arguments})


@pytest.fixture
def sqlite_site(request, monkeypatch):
    """A site on SQLite alone: what is tested with it does not depend on the engine."""
    from tests.conftest import _site

    return _site("sqlite", request, monkeypatch)


@pytest.fixture
def named(sqlite_site):
    """A site whose models have names that are hard to write."""
    for number, name in enumerate(NAMES):
        for place in range(number + 1):
            correlation_id = f"r{number}-{place}"
            calls(sqlite_site.engine, correlation_id, name, actual_cost=0.01)
            outcome(sqlite_site.engine, correlation_id, "helpful" if place % 2 else "not_helpful", MARCH + place * DAY)
            value = ("edited", "accepted_unchanged", "discarded", "unknown")[place % 4]
            outcome(sqlite_site.engine, correlation_id, value, MARCH + place * DAY)
    return sqlite_site


@pytest.fixture
def page(named, tmp_path):
    """The page of that site."""
    operator(named, output_path=str(tmp_path)).execute({})
    return tmp_path / "outcomes.html"


def test_the_result_is_plain_json_with_the_sources_apart(site):
    for correlation_id, model, values in [("r1", "a", ["helpful", "edited"]), ("r2", "b", ["unknown", "not_helpful"])]:
        calls(site.engine, correlation_id, model)
        for value in values:
            outcome(site.engine, correlation_id, value)
    result = operator(site).execute({})
    assert result == json.loads(json.dumps(result))
    explicit, observed = result["explicit"]["groups"], result["observed"]["groups"]
    assert [("a", 1, 0), ("b", 0, 1)] == [(g["group"][0]["name"], g["helpful"], g["not_helpful"]) for g in explicit]
    assert [("a", 1, 0), ("b", 0, 1)] == [(g["group"][0]["name"], g["edited"], g["unknown"]) for g in observed]
    # Of b's one run none is decided: no share is not a share of zero.
    assert {"count": 0, "of": 0, "value": None, "low": None, "high": None} == observed[1]["shares"]["edited"]
    assert {"count": 1, "of": 1, "value": 1.0, "low": 0.206549, "high": 1.0} == observed[1]["shares"]["unknown"]
    # 0 of 1 less 1 of 1; Wilson's ends (0, 0.793451) and (0.206549, 1): -1 to -1 + hypot(0.793451, 0.793451).
    difference = result["explicit"]["compared"]["differences"][0]["helpful"]
    assert {"value": -1.0, "low": -1.0, "high": 0.122109} == difference


@pytest.fixture
def said(caplog, capfd):
    """What was logged so far; Airflow 3 writes it to the standard streams."""
    caplog.set_level(logging.INFO)
    return lambda: "".join([caplog.text, *capfd.readouterr()])


def test_it_says_that_it_recommends_nothing(sqlite_site, said):
    result = operator(sqlite_site).execute({})
    assert result["note"].startswith("This readout makes no recommendation")
    assert "This readout makes no recommendation" in said()


def test_past_200_groups_the_result_says_how_many_were_left_out(sqlite_site, tmp_path):
    with sqlite_site.engine.begin() as connection:
        for number in range(203):
            calls(connection, f"r{number}", f"model {number}")
            outcome(connection, f"r{number}", "helpful")
    result = operator(sqlite_site, output_path=str(tmp_path)).execute({})
    assert (200, 200, 3) == (len(result["groups"]), len(result["explicit"]["groups"]), result["groups_left_out"])
    assert 203 == len(json.loads((tmp_path / "outcomes.json").read_text())["groups"])


def test_names_stay_within_their_cell_of_the_log(named, said):
    operator(named).execute({})
    lines = said().splitlines()
    # Each line of a table has as many cells as its head, whatever is in them: 2, 5, 8 or 10.
    widths = {len(re.findall(r"(?<!\\)\|", line)) - 1 for line in lines if line.startswith("|")}
    assert {2, 5, 8, 10} == widths
    assert not any(line.startswith("# no heading") for line in lines)


def test_the_files_hold_every_figure(named, tmp_path):
    result = operator(named, output_path=str(tmp_path)).execute({})
    assert ["outcomes.json", "outcomes.csv", "outcomes.html"] == [Path(file).name for file in result["files"]]
    figures = json.loads((tmp_path / "outcomes.json").read_text("utf-8"))
    assert {*NAMES} == {group["group"][0]["name"] for group in figures["groups"]}
    with (tmp_path / "outcomes.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    # A spreadsheet would take the name for a formula.
    assert {*NAMES, "'" + FORMULA} - {FORMULA} == {row["group_1"] for row in rows if row["group_1"]}
    ratings = {row["group_1"]: row["count"] for row in rows if (row["table"], row["figure"]) == ("explicit", "helpful")}
    assert ("2", "0") == (ratings[LONG], ratings[QUOTES])


def test_files_go_to_an_object_storage_path_and_replace_those_of_before(named, tmp_path):
    path = ObjectStoragePath(f"file://{tmp_path}/deeper/still")
    for _ in range(2):
        operator(named, output_path=path).execute({})
    assert {"outcomes.json", "outcomes.csv", "outcomes.html"} == {f.name for f in (tmp_path / "deeper/still").iterdir()}


def test_nothing_is_written_without_a_path(named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [] == operator(named).execute({})["files"]
    assert [] == list(tmp_path.iterdir())


def test_an_empty_range_is_a_page_too(sqlite_site, tmp_path):
    result = operator(sqlite_site, output_path=str(tmp_path)).execute({})
    assert ([], None) == (result["groups"], result["explicit"]["compared"])
    assert "None in this range." in (tmp_path / "outcomes.html").read_text()


def test_without_the_extra_the_error_says_what_to_install(named, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for module in ("page", "pictures", "svg"):
        monkeypatch.delitem(sys.modules, f"airflow_provider_nrllm.readout.{module}", raising=False)
    with pytest.raises(NrLlmExtraError, match=r"pip install 'airflow-provider-nrllm\[readout\]'"):
        operator(named, output_path=str(tmp_path)).execute({})


class Page(HTMLParser):
    """What a page holds: its elements, the links it follows, and the ids it gives."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.ids, self.attributes, self.rows = [], [], [], [], []
        self.feed(text)

    def handle_data(self, data):
        if self.tags[-1:] == ["bdi"]:
            self.rows.append(data)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href", "action", "data")]
        self.ids += [value for name, value in attrs if name == "id"]


def test_the_page_is_self_contained_and_runs_no_script(page):
    text = page.read_text("utf-8")
    found = Page(text)
    assert "script" not in found.tags
    assert [] == [link for link in found.links if not link.startswith("#")]
    assert [] == re.findall(r"url\((?!#)|@import", text)
    assert not any(name.startswith("on") for _, attributes in found.attributes for name in attributes)


def test_the_page_escapes_every_name(page):
    text = page.read_text("utf-8")
    assert SCRIPT not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_the_page_can_be_read_aloud(page):
    found = Page(page.read_text("utf-8"))
    number = found.tags.count("table")
    assert ("html", {"lang": "en"}) in found.attributes
    assert number == found.tags.count("caption") > 4
    scopes = {attributes.get("scope") for tag, attributes in found.attributes if tag == "th"}
    assert {"col", "row"} == scopes
    images = [attributes for tag, attributes in found.attributes if tag == "svg"]
    assert 5 == len(images)
    for image in images:
        assert "img" == image["role"]
        assert set(image["aria-labelledby"].split()) <= set(found.ids)


def test_no_id_of_the_page_is_given_twice(page):
    ids = Page(page.read_text("utf-8")).ids
    assert sorted(set(ids)) == sorted(ids)


CHROMIUM = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def browse(tmp_path, *arguments):
    """Run Chromium, which has to be there."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.fail("Chromium is not installed; on Debian: apt-get install chromium", pytrace=False)
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    done = subprocess.run([browser, *CHROMIUM, profile, *arguments], capture_output=True, timeout=120, check=False)
    assert 0 == done.returncode, done.stderr.decode(errors="replace")[-2000:]
    return done.stdout.decode("utf-8")


def test_a_browser_shows_the_tables_and_the_pictures(page, tmp_path):
    import matplotlib.image

    screenshot = tmp_path / "page.png"
    browse(tmp_path, "--window-size=1300,4000", f"--screenshot={screenshot}", page.as_uri())
    pixels = matplotlib.image.imread(screenshot)[:, :, :3]
    assert (4000, 1300) == pixels.shape[:2]
    # The colours of the values are those of Okabe and Ito, and each is seen on a good many pixels.
    for color in ("0072B2", "E69F00", "009E73", "F0E442", "D55E00"):
        wanted = [int(color[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        seen = (abs(pixels - wanted) < 0.02).all(axis=2).sum()
        assert seen > 300, color


def test_a_browser_finds_every_name_as_text_and_makes_nothing_of_it(page, tmp_path):
    dom = browse(tmp_path, "--dump-dom", page.as_uri())
    found = Page(dom)
    assert "script" not in found.tags
    assert (5, 5) == (found.tags.count("svg"), found.tags.count("table"))
    assert {*NAMES} <= set(found.rows)


def test_the_page_prints(page, tmp_path):
    browse(tmp_path, f"--print-to-pdf={tmp_path / 'page.pdf'}", page.as_uri())
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_the_range_is_the_data_interval_without_arguments(sqlite_site):
    outcome(sqlite_site.engine, "r1", "helpful", MARCH + DAY)
    task = operator(sqlite_site, interval_start=None, interval_end=None)
    inside = task.execute({"data_interval_start": START, "data_interval_end": END})
    after = task.execute({"data_interval_start": END, "data_interval_end": END + timedelta(days=1)})
    everything = task.execute({})
    assert [1, 0, 1] == [len(result["groups"]) for result in (inside, after, everything)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"group_by": "be_user"},
        {"group_by": []},
        {"group_by": ["operation", "operation"]},
        {"group_by": ["operation", "served_model", "configuration"]},
        {"range_of": "telemetry"},
        {"window": 0},
        {"interval_start": END, "interval_end": START},
        {"interval_start": START, "interval_end": None},
        {"release_fields": "hidden"},
    ],
)
def test_what_cannot_be_is_refused_when_the_dag_is_parsed(sqlite_site, arguments):
    with pytest.raises(ValueError):  # noqa: PT011
        operator(sqlite_site, **arguments)
    with pytest.raises(ValueError):  # noqa: PT011
        NrLlmEditedAuditOperator(task_id="audit", **arguments)


def test_a_rendered_range_that_cannot_be_is_not_retried(sqlite_site):
    task = operator(sqlite_site, interval_start="{{ a }}", interval_end="{{ b }}")
    task.interval_start, task.interval_end = "2026-03-02", "2026-03-01"
    with pytest.raises(NrLlmPartitionError, match="expected an end after the start"):
        task.execute({})
