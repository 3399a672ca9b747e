"""A readout as people and programs get it: HTML, in a real browser too, Markdown, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from datetime import date, timedelta
from html.parser import HTMLParser

import pytest

from airflow_provider_nrllm.edits.meanings import Meaning
from airflow_provider_nrllm.outcomes.rules import ExplicitOutcome, ObservedOutcome
from airflow_provider_nrllm.readout.counts import (
    Day,
    EditedRuns,
    Explicit,
    Group,
    Observed,
    RangeOf,
    Readout,
    Usage,
    explicit_comparisons,
    in_order,
    observed_comparisons,
)
from airflow_provider_nrllm.readout.exports import as_csv, as_json
from airflow_provider_nrllm.readout.groups import Dimension, Kind, Label, grouping_of, label_text
from airflow_provider_nrllm.readout.markdown import as_markdown, code
from airflow_provider_nrllm.readout.page import as_html
from tests.typo3.readouts import CRAB, DAY, FORMULA, LONG, MARCH, QUOTES, ROCKET, SCRIPT

HEADING = "$x^2$ &amp; _a_\n# no heading"
NAMES = [QUOTES, SCRIPT, ROCKET, CRAB, LONG, FORMULA, HEADING]


def explicit(helpful=0, not_helpful=0):
    return Explicit(dict(zip(ExplicitOutcome, (helpful, not_helpful), strict=True)))


def observed(accepted=0, edited=0, discarded=0, unknown=0):
    return Observed(dict(zip(ObservedOutcome, (accepted, edited, discarded, unknown), strict=True)))


def group(label, rated=(), became=(), usage=Usage(), edited=None):  # noqa: B008
    label = Label(Kind.NAMED, label) if isinstance(label, str) else label
    return Group((label,), explicit(*rated), observed(*became), usage, edited)


def readout(groups, days=(), audited=False):
    by_model = (Dimension.SERVED_MODEL,)
    return Readout(MARCH, MARCH + 30 * DAY, RangeOf.OUTCOME, by_model, in_order(groups), tuple(days), 0, audited)


EDITED = EditedRuns({Meaning.RUN_TEXT: 6, Meaning.RELEASE: 3, Meaning.NO_CHANGE: 2, Meaning.CANNOT_BE_TOLD: 1})
WORLD = readout(
    [
        group("model-a", (40, 12), (80, 12, 9, 12), Usage(150, 0.5, 100, 60_000, 150), EDITED),
        *(group(name, (number, 7 - number), (3, number, 2, 1), Usage(12)) for number, name in enumerate(NAMES)),
        group("only unknown", (), (0, 0, 0, 5)),
        group("only rated", (0, 1), ()),
        group(Label(Kind.SEVERAL), (5, 5), (5, 5, 5, 5)),
        group(Label(Kind.NO_TELEMETRY), (9, 1), (5, 5, 5, 5)),
    ],
    [
        Day(date(2026, 3, 1) + timedelta(days=n), explicit(n % 4, n % 3), observed(n % 5, n % 3, n % 2, 1))
        for n in (0, 1, 2, 5, 6, 7, 20, 28)
    ],
    audited=True,
)


class Page(HTMLParser):
    """What a page holds: its elements, the links it follows, the ids it gives, and the names of its rows."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.names = [], []
        self.feed(text)
        self.tags = [tag for tag, _ in self.elements]
        self.ids = [attributes["id"] for _, attributes in self.elements if "id" in attributes]
        followed = ("src", "href", "xlink:href", "action", "data", "srcset", "poster")
        self.links = [attributes[name] for _, attributes in self.elements for name in followed if name in attributes]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.elements and self.elements[-1][0] == "bdi":
            self.names.append(data)


@pytest.fixture(scope="module")
def text():
    """The page."""
    return as_html(WORLD)


@pytest.fixture(scope="module")
def page(text):
    """What is in it."""
    return Page(text)


@pytest.fixture(scope="module")
def file(text, tmp_path_factory):
    """The page as a file."""
    path = tmp_path_factory.mktemp("page") / "outcomes.html"
    path.write_text(text, "utf-8")
    return path


def test_the_page_loads_nothing_and_runs_no_script(text, page):
    assert "script" not in page.tags
    assert [] == [link for link in page.links if not link.startswith("#")]
    assert [] == re.findall(r"url\((?!#)|@import", text)
    assert [] == [name for _, attributes in page.elements for name in attributes if name.startswith("on")]


def test_the_page_escapes_every_name(text, page):
    assert SCRIPT not in text
    assert {*NAMES} <= {*page.names}


def test_each_table_has_a_caption_and_each_head_a_scope(page):
    assert 6 == page.tags.count("table") == page.tags.count("caption")
    assert {"col", "row"} == {attributes.get("scope") for tag, attributes in page.elements if tag == "th"}


def test_each_picture_has_a_title_and_a_description_in_words(page):
    pictures = [attributes for tag, attributes in page.elements if tag == "svg"]
    assert 5 == len(pictures) == page.tags.count("desc")
    for picture in pictures:
        assert "img" == picture["role"]
        assert {*picture["aria-labelledby"].split()} <= {*page.ids}


def test_no_id_is_given_twice_and_each_reference_has_its_target(text, page):
    assert sorted({*page.ids}) == sorted(page.ids)
    referred = {link[1:] for link in page.links} | {*re.findall(r"url\(#([^)]+)\)", text)}
    assert referred <= {*page.ids}


def test_the_page_names_its_language_and_says_that_it_recommends_nothing(text, page):
    assert ("html", {"lang": "en"}) == page.elements[0]
    assert "This readout makes no recommendation" in text


def test_each_picture_and_table_is_of_one_source(text):
    # The last section tells of the calls; each of those before it is of one source, and says which.
    sections = re.findall(r"<section.*?</section>", text, re.DOTALL)
    titles = [re.search(r"<h2[^>]*>(.*?)</h2>", section)[1] for section in sections]
    assert ["Explicit", "Explicit", "Observed", "Observed", "Observed"] == [t.split(":")[0] for t in titles[:-1]]
    for section, title in zip(sections[:-1], titles[:-1], strict=True):
        # The marks of the other source's values are not in it.
        assert ("accepted unchanged" in section.lower()) <= title.startswith("Observed")
        assert ("helpful" in section.lower()) <= title.startswith("Explicit")


def test_a_name_of_control_characters_breaks_no_picture():
    names = ["a\x01\x1b[2J", "b\x00", "\u202ec\uffff", "\ud800", ""]
    page = as_html(readout([group(name, (1, 1), (1, 1)) for name in names], WORLD.days))
    assert 5 == Page(page).tags.count("svg")


def test_an_empty_readout_is_a_page_without_pictures():
    empty = Page(as_html(readout([])))
    assert (0, 0) == (empty.tags.count("svg"), empty.tags.count("table"))


def browse(directory, *arguments):
    """Run Chromium, which has to be there, and return what it prints."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.fail("Chromium is not installed; on Debian: apt-get install chromium", pytrace=False)
    quiet = ["quic", "background-networking", "component-update", "sync"]
    done = subprocess.run(
        [
            browser,
            *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *(f"--disable-{name}" for name in quiet),
            f"--user-data-dir={directory}/profile",
            *arguments,
        ],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert 0 == done.returncode, done.stderr.decode(errors="replace")[-2000:]
    return done.stdout.decode("utf-8")


def test_a_browser_draws_every_value_in_its_colour(file, tmp_path):
    import matplotlib.image

    browse(tmp_path, "--window-size=1300,5000", f"--screenshot={tmp_path}/page.png", file.as_uri())
    pixels = matplotlib.image.imread(tmp_path / "page.png")[:, :, :3]
    assert (5000, 1300) == pixels.shape[:2]
    for color in ("0072B2", "E69F00", "009E73", "F0E442", "D55E00", "DDDDDD"):
        wanted = [int(color[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        seen = int((abs(pixels - wanted) < 0.02).all(axis=2).sum())
        assert seen > 500, color


def test_a_browser_reads_the_names_as_text(file, tmp_path):
    seen = Page(browse(tmp_path, "--dump-dom", file.as_uri()))
    assert (5, 6) == (seen.tags.count("svg"), seen.tags.count("table"))
    assert "script" not in seen.tags
    assert {*NAMES} <= {*seen.names}


def test_a_browser_prints_the_page(file, tmp_path):
    browse(tmp_path, f"--print-to-pdf={tmp_path}/page.pdf", file.as_uri())
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_each_line_of_a_markdown_table_has_the_cells_of_its_head():
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in as_markdown(WORLD, 200).splitlines() if line[:1] == "|"]
    assert {3, 6, 9, 10, 11} >= {*widths}
    assert "\n# no heading" not in as_markdown(WORLD, 200)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("gpt-4.1", "`gpt-4.1`"),
        ("a|b", "`a\\|b`"),
        ("a`b", "``a`b``"),
        ("`a`", "`` `a` ``"),
        ("", "` `"),
        ("a\nb\x1b[2Jc\u202ed\u2028", "`a\ufffdb\ufffd[2Jc\ufffdd\ufffd`"),
        (SCRIPT, f"`{SCRIPT}`"),
    ],
)
def test_a_name_is_one_code_span(name, written):
    assert written == code(name)


def test_markdown_says_how_many_groups_it_leaves_out():
    assert "Left out here: 9 smaller groups." in as_markdown(WORLD, 3)


def test_json_is_plain_and_says_what_it_leaves_out():
    figures = as_json(WORLD, 3)
    assert figures == json.loads(json.dumps(figures, allow_nan=False))
    assert (3, 9, 0) == (len(figures["groups"]), figures["groups_left_out"], figures["days_left_out"])


def test_json_tells_what_edits_are_to_run_text():
    edited = as_json(WORLD)["observed"]["groups"][0]["edited_are"]
    # Of 12, 6 are of the run's text and 1 cannot be told: 5 would not be EDITED.
    assert (12, 6, 3) == (edited["edited_runs"], edited["run_text"], edited["release"])
    assert (5, 12, 0.416667) == tuple(edited["over_report"][name] for name in ("count", "of", "value"))


def test_csv_holds_each_name_and_no_formula():
    rows = list(csv.DictReader(io.StringIO(as_csv(WORLD), newline="")))
    names = {row["group_1"] for row in rows}
    assert {*NAMES} - {FORMULA} | {"'" + FORMULA} <= names
    assert FORMULA not in names


def test_what_is_unknown_is_not_among_the_decided():
    became = observed(accepted=2, edited=1, discarded=1, unknown=6)
    assert (2, 4) == (became.share(ObservedOutcome.ACCEPTED_UNCHANGED).count, became.share(ObservedOutcome.EDITED).of)
    # But unknown is among all, so that a group that is mostly unknown cannot look good.
    assert (6, 10) == (became.share(ObservedOutcome.UNKNOWN).count, became.share(ObservedOutcome.UNKNOWN).of)


def test_groups_are_compared_with_the_largest_of_the_source():
    groups = in_order([group("a", (9, 1), (1,)), group("b", (1, 1), (5, 5)), group("c", (0, 1))])
    rated, became = explicit_comparisons(groups), observed_comparisons(groups)
    assert ("a", ["b", "c"]) == (rated.reference.key[0].name, [row.group.key[0].name for row in rated.rows])
    assert ("b", ["a"]) == (became.reference.key[0].name, [row.group.key[0].name for row in became.rows])


def test_what_has_no_one_name_is_compared_with_nothing():
    groups = [group("a", (9, 1)), group(Label(Kind.SEVERAL), (1, 1)), group(Label(Kind.NO_TELEMETRY), (1, 1))]
    assert explicit_comparisons(groups) is None


def test_an_arm_is_called_by_both_its_names():
    grouping = grouping_of(["served_model", "routing_mode"])
    assert "a · no automatic selection" == label_text((Label(Kind.NAMED, "a"), Label(Kind.NAMED)), grouping)
    assert "several served models · cheap" == label_text((Label(Kind.SEVERAL), Label(Kind.NAMED, "cheap")), grouping)
