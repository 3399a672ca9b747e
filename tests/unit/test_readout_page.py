"""A readout as people and programs get it: HTML, Markdown, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser

import pytest

from airflow_provider_nrllm.outcomes.rules import ObservedOutcome
from airflow_provider_nrllm.readout.exports import as_json
from airflow_provider_nrllm.readout.groups import Kind, Label, grouping_of, label_text
from airflow_provider_nrllm.readout.markdown import as_markdown, code
from airflow_provider_nrllm.readout.page import as_html
from airflow_provider_nrllm.readout.pictures import PICTURE_GROUPS, Mark, Segment, mark, segments
from airflow_provider_nrllm.readout.shares import Difference, Share
from airflow_provider_nrllm.readout.spreadsheet import as_csv
from airflow_provider_nrllm.readout.tables import cell_text, lines_of
from tests.typo3.readouts import FORMULA, SCRIPT
from tests.typo3.reports import NAMES, WORLD, group, observed, readout


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


def test_each_picture_is_described_in_words_or_said_to_be_none(page):
    for attributes in (attributes for tag, attributes in page.elements if tag == "svg"):
        assert ("img" == attributes.get("role") and attributes["aria-label"]) or "true" == attributes["aria-hidden"]
    described = [attributes.get("aria-label") for tag, attributes in page.elements if tag == "svg"]
    assert "80 accepted unchanged, 12 edited, 9 discarded, 12 unknown" in described
    assert "helpful, among all ratings: 76.9 %, 40 of 52, 63.9 to 86.3" in described


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
    assert ["Observed", "Observed", "Observed", "Explicit", "Explicit"] == [t.split(":")[0] for t in titles[:-1]]
    for section, title in zip(sections[:-1], titles[:-1], strict=True):
        # The marks of the other source's values are not in it.
        assert ("accepted unchanged" in section.lower()) <= title.startswith("Observed")
        assert ("helpful" in section.lower()) <= title.startswith("Explicit")


def test_a_picture_shows_the_whole_of_each_name():
    names = ["anthropic/claude-sonnet-4-extended-20250514", "anthropic/claude-sonnet-4-extended-20250929"]
    page = Page(as_html(readout([group(name, (1, 1), (1, 1)) for name in names])))
    # In both pictures, both tables and that of the calls; the second is also beside the first, twice.
    assert [5, 7] == [page.names.count(name) for name in names]


def test_a_picture_shows_the_largest_groups_and_says_how_many_there_are():
    text = as_html(readout([group(f"model {number:02}", (), (number + 1,)) for number in range(PICTURE_GROUPS + 2)]))
    assert "Observed outcomes of each group: the 30 largest of 32" in text
    picture = re.search(r"<figure>.*?</figure>", text, re.DOTALL)[0]
    shown = re.findall("<bdi>(.*?)</bdi>", picture)
    assert (PICTURE_GROUPS, "model 31", "model 02") == (len(shown), shown[0], shown[-1])


def test_a_bar_is_divided_as_its_counts_are_and_labelled_where_there_is_room():
    assert (
        Segment("accepted_unchanged", 0, 75, "150"),
        Segment("discarded", 75, 3, ""),
        Segment("unknown", 78, 22, "44"),
    ) == segments({"accepted_unchanged": 150, "edited": 0, "discarded": 6, "unknown": 44})


def test_a_mark_stands_at_its_share_within_its_interval():
    # Wilson's interval of 8 of 10.
    assert Mark(at=80, low=49.02, high=94.33) == mark(Share(8, 10))
    assert mark(Share(0, 0)) is None


@pytest.mark.parametrize(
    ("cell", "lines", "text"),
    [
        ("any text", ("any text",), "any text"),
        (Share(8, 10), ("80.0 %", "8 of 10", "49.0 to 94.3"), "8 of 10 · 80.0 % (49.0 to 94.3)"),
        (Share(1000, 2000), ("50.0 %", "1,000 of 2,000", "47.8 to 52.2"), "1,000 of 2,000 · 50.0 % (47.8 to 52.2)"),
        (Share(0, 0), ("–",), "–"),
        (
            Difference(Share(8, 10), Share(8, 10)),
            ("0.0", "cannot be told yet", "−34.1 to +34.1"),
            "cannot be told yet · 0.0 (−34.1 to +34.1)",
        ),
        (Difference(Share(8, 10), Share(0, 0)), ("–",), "–"),
    ],
)
def test_a_figure_says_how_sure_it_is(cell, lines, text):
    assert lines == lines_of(cell)
    assert text == cell_text(cell)


def test_an_empty_readout_is_a_page_without_pictures():
    empty = Page(as_html(readout([])))
    assert (0, 0) == (empty.tags.count("figure"), empty.tags.count("table"))


def test_each_line_of_a_markdown_table_has_the_cells_of_its_head():
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in as_markdown(WORLD, 200).splitlines() if line[:1] == "|"]
    assert {3, 5, 6, 7, 9, 11} == {*widths}
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
    assert (3, 9, 0) == (len(figures["groups"]), figures["groups_left_out"], figures["periods_left_out"])


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


def test_an_arm_is_called_by_both_its_names():
    grouping = grouping_of(["served_model", "routing_mode"])
    assert "a · no automatic selection" == label_text((Label(Kind.NAMED, "a"), Label(Kind.NAMED)), grouping)
    assert "several served models · cheap" == label_text((Label(Kind.SEVERAL), Label(Kind.NAMED, "cheap")), grouping)
