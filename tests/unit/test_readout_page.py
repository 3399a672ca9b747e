"""A readout as people and programs get it: HTML, Markdown, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser

import pytest

from airflow_provider_nrllm.outcomes.rules import ObservedOutcome
from airflow_provider_nrllm.readout.cells import cell_text, lines_of
from airflow_provider_nrllm.readout.counts import Usage
from airflow_provider_nrllm.readout.exports import as_json
from airflow_provider_nrllm.readout.groups import Dimension, Kind, Label, grouping_of, label_text
from airflow_provider_nrllm.readout.markdown import as_markdown, code
from airflow_provider_nrllm.readout.over_time import TIMELINE_GROUPS, TIMELINE_PERIODS, period_text
from airflow_provider_nrllm.readout.page import PAGE_GROUPS, as_html
from airflow_provider_nrllm.readout.periods import PeriodWidth
from airflow_provider_nrllm.readout.pictures import PICTURE_GROUPS, Mark, Segment, gaps_of, mark, segments
from airflow_provider_nrllm.readout.shares import Difference, Share
from airflow_provider_nrllm.readout.spreadsheet import as_csv
from airflow_provider_nrllm.readout.tables import tables_of
from airflow_provider_nrllm.readout.timelines import timelines_of
from tests.typo3.readouts import FORMULA, SCRIPT
from tests.typo3.reports import AUDIT, NAMES, WORLD, arm, group, observed, over_time, readout


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
    assert 13 == page.tags.count("table") == page.tags.count("caption")
    assert {"col", "row"} == {attributes.get("scope") for tag, attributes in page.elements if "th" == tag}


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
    sections = re.findall(r"<section.*?</section>", text, re.DOTALL)
    titles = [re.search(r"<h2[^>]*>(.*?)</h2>", section)[1] for section in sections]
    assert ["Observed"] * 8 + ["Explicit"] * 5 == [title.split(":")[0] for title in titles]
    for section, title in zip(sections, titles, strict=True):
        # The marks of the other source's values are not in it.
        assert ("accepted unchanged" in section.lower()) <= title.startswith("Observed")
        assert ("helpful" in section.lower()) <= title.startswith("Explicit")


def test_a_picture_shows_the_whole_of_each_name():
    names = ["anthropic/claude-sonnet-4-extended-20250514", "anthropic/claude-sonnet-4-extended-20250929"]
    page = Page(as_html(readout([group(name, (1, 1), (1, 1)) for name in names])))
    # In both pictures, both tables and those of the calls; the second is also beside the first, twice and drawn.
    assert [6, 10] == [page.names.count(name) for name in names]


def test_a_picture_shows_the_largest_groups_and_says_how_many_there_are():
    text = as_html(readout([group(f"model {number:02}", (), (number + 1,)) for number in range(PICTURE_GROUPS + 2)]))
    assert "Observed outcomes of each group: the 30 largest of 32" in text
    picture = re.search(r"<figure>.*?</figure>", text, re.DOTALL)[0]
    shown = re.findall("<bdi>(.*?)</bdi>", picture)
    assert (PICTURE_GROUPS, "model 31", "model 02") == (len(shown), shown[0], shown[-1])


def test_the_page_shows_the_largest_groups_and_says_how_many_it_leaves_out():
    groups = [group(f"model {n:03}", (1, 1), (n + 9, 5, 3, 1), Usage(n), AUDIT) for n in range(PAGE_GROUPS + 1)]
    text = as_html(readout(groups, audited=True))
    assert "Left out here: 1 smaller group. JSON and CSV have all." in text
    assert (True, False) == ("model 001" in text, "model 000" in text)
    assert len(text) < 1_000_000
    assert "Left out here" not in as_html(readout(groups[1:]))


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


def test_a_difference_stands_to_the_left_or_the_right_of_0_on_a_scale_that_holds_all():
    (picture,) = gaps_of(readout([group("a", (), (80, 20)), group("b", (), (40, 40)), group("c", (), (7, 1))]))
    # The intervals reach from -42.6 to +23.8 points.
    assert 50 == picture.limit
    below, above = picture.gaps
    # 50 % less 80 %, and 87.5 % less 80 %: 30 points to the left of 0, 7.5 to the right.
    assert ("b", 20.0, True) == (below.name, below.mark.at, below.is_told)
    assert ("c", 57.5, False) == (above.name, above.mark.at, above.is_told)
    assert above.mark.low < 50 < above.mark.high


def test_what_is_pooled_is_drawn_on_the_scale_of_what_it_is_made_of():
    arms = [arm(name, model, *became) for name in ("x", "y") for model, became in [("a", (80, 20)), ("b", (4, 4))]]
    two = replace(readout(arms), grouping=(Dimension.CONFIGURATION, Dimension.SERVED_MODEL))
    within, pooled = gaps_of(two)
    assert ("observed-compared", "observed-pooled") == (within.topic, pooled.topic)
    assert (within.limit, ["b"]) == (pooled.limit, [gap.name for gap in pooled.gaps])


def test_nothing_is_drawn_where_nothing_is_compared():
    assert [] == gaps_of(readout([group("a", (1, 1), (1, 1)), group(Label(Kind.SEVERAL), (1, 1), (1, 1))]))


WEEKS = {
    date(2026, 3, 2): ((), (3, 1, 0, 4)),
    date(2026, 3, 9): ((), (1, 3)),
    date(2026, 3, 23): ((), (0, 0, 0, 2)),
    date(2026, 3, 30): ((), (2, 0)),
}


def test_a_timeline_is_broken_where_there_is_no_share():
    (picture,) = timelines_of(readout([over_time("a", WEEKS)], width=PeriodWidth.WEEK))
    (timeline,) = picture.timelines
    # Five weeks from the first to the last; the third has no run, the fourth no decided one.
    assert 5 == picture.length
    assert "M0.5 25.0L1.5 75.0M4.5 0.0" == timeline.line
    assert "M0.5 25.0h0M1.5 75.0h0M4.5 0.0h0" == timeline.dots


def test_a_thin_period_looks_thin():
    (picture,) = timelines_of(readout([over_time("a", WEEKS)], width=PeriodWidth.WEEK))
    (timeline,) = picture.timelines
    # The week with the most runs has 8, of which 4 are decided.
    assert (8, 16) == (picture.most, timeline.total)
    assert timeline.decided.startswith("M0 100V50.0h1V100z")
    assert timeline.decided.endswith("M4 100V75.0h1V100z")
    assert "M0 50.0V0.0h1V50.0zM3 100.0V75.0h1V100.0z" == timeline.others
    # Wilson's intervals of 3 of 4 and of 2 of 2.
    assert timeline.whiskers.startswith("M0.5 69.9V4.6")
    assert timeline.whiskers.endswith("M4.5 65.8V0.0")


def test_all_timelines_have_one_scale_and_the_largest_groups_are_shown():
    groups = [over_time(f"model {n}", dict.fromkeys(WEEKS, ((), (n, 1)))) for n in range(1, 9)]
    groups.append(group(Label(Kind.SEVERAL), (), (90, 0), periods=groups[0].periods))
    (picture,) = timelines_of(readout(groups, width=PeriodWidth.WEEK))
    assert [f"model {n}" for n in range(8, 8 - TIMELINE_GROUPS, -1)] == [each.name for each in picture.timelines]
    assert 9 == picture.most
    assert "the 6 largest of 8 groups" in as_html(readout(groups, width=PeriodWidth.WEEK))


def test_what_is_of_no_one_name_is_shown_over_time_where_there_is_nothing_else():
    alone = group(Label(Kind.NO_TELEMETRY), (), (1, 1), periods=over_time("a", WEEKS).periods)
    (picture,) = timelines_of(readout([alone], width=PeriodWidth.WEEK))
    assert ["no telemetry"] == [each.name for each in picture.timelines]


def test_one_period_is_not_shown_over_time():
    once = readout([over_time("a", {date(2026, 3, 2): ((1, 1), (1, 1))})], width=PeriodWidth.WEEK)
    assert [] == timelines_of(once)
    assert "over time" not in as_html(once)


def test_a_record_of_1970_makes_neither_page_nor_picture_long():
    months = {date(1970, 1, 1): ((), (1,))} | {date(2026, month, 1): ((2, 1), (5, 1)) for month in (1, 2, 3)}
    readout_of_all = readout([over_time("a", months)], width=PeriodWidth.MONTH)
    picture = timelines_of(readout_of_all)[0]
    assert (TIMELINE_PERIODS, 675 - TIMELINE_PERIODS) == (picture.length, picture.left_out)
    assert "2026-03" == picture.ticks[-1][1]
    assert len(as_html(readout_of_all)) < 50_000


def test_a_table_over_time_has_a_row_a_period_and_a_column_a_group():
    groups = [over_time("a", WEEKS), over_time("b | c", {date(2026, 3, 9): ((), (8, 2)), date(2026, 4, 6): ((), (1,))})]
    table = next(
        t for t in tables_of(readout(groups, width=PeriodWidth.WEEK), groups) if "observed-over-time" == t.topic
    )
    assert ("Week", "a", "b | c") == table.head
    assert [
        ("2026-03-02", Share(3, 4), Share(0, 0)),
        ("2026-03-09", Share(1, 4), Share(8, 10)),
        ("2026-03-23", Share(0, 0), Share(0, 0)),
        ("2026-03-30", Share(2, 2), Share(0, 0)),
        ("2026-04-06", Share(0, 0), Share(1, 1)),
    ] == [(row.name, *row.cells) for row in table.rows]
    assert r"| Week | `a` | `b \| c` |" in as_markdown(readout(groups, width=PeriodWidth.WEEK), 200)


@pytest.mark.parametrize(
    ("width", "text"),
    [(PeriodWidth.DAY, "2026-03-02"), (PeriodWidth.WEEK, "2026-03-02"), (PeriodWidth.MONTH, "2026-03")],
)
def test_a_period_is_told_by_its_month_or_its_first_day(width, text):
    assert text == period_text(date(2026, 3, 2), width)


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
    assert {3, 5, 6, 7, 8, 9, 11} == {*widths}
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
    assert "Left out here: 1 smaller group." in as_markdown(WORLD, 11)


def test_json_is_plain_and_says_what_it_leaves_out():
    figures = as_json(WORLD, 3)
    assert figures == json.loads(json.dumps(figures, allow_nan=False))
    assert (3, 9, 0) == (len(figures["groups"]), figures["groups_left_out"], figures["periods_left_out"])


def test_json_tells_what_edits_are_to_run_text():
    edited = as_json(WORLD)["observed"]["groups"][0]["edited_are"]
    # Of 12, 6 are of the run's text and 1 cannot be told: 5 would not be EDITED.
    assert (12, 6, 3) == (edited["edited_runs"], edited["run_text"], edited["release"])
    assert (5, 12, 0.416667) == tuple(edited["over_report"][name] for name in ("count", "of", "value"))


def test_every_format_tells_what_became_of_accepted_runs_and_in_which_ways_runs_ended():
    group = as_json(WORLD)["observed"]["groups"][0]
    accepted, several = group["accepted_are"], group["several_records"]
    assert (80, 30, 40, 10) == tuple(
        accepted[name] for name in ("accepted_runs", "still_hidden", "visible_already", "released")
    )
    # Of 20 runs with several records 2 cannot be told, and 5 ended in more than one way.
    assert (20, 2, 5) == tuple(several[name] for name in ("runs", "cannot_be_told", "in_several_ways"))
    assert {"edited + accepted_unchanged": 4, "discarded + edited": 1} == several["ways"]
    assert (5, 18) == tuple(several["shares"]["in_several_ways"][name] for name in ("count", "of"))
    rows = {(row["table"], row["figure"]): row for row in csv.DictReader(io.StringIO(as_csv(WORLD), newline=""))}
    assert ("30", "80") == tuple(rows["accepted", "still_hidden"][name] for name in ("count", "of"))
    assert ("4", "5") == tuple(rows["several records", "edited + accepted_unchanged"][name] for name in ("count", "of"))
    for text in (as_html(WORLD), as_markdown(WORLD, 200)):
        assert "how much of ACCEPTED UNCHANGED was taken up" in text
        assert "4 edited + accepted unchanged; 1 discarded + edited" in text


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
