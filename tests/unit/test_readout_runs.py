"""The runs behind a readout's figures, as people and programs get them."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from datetime import date

import pytest

from airflow_provider_nrllm.outcomes.evidence import Target
from airflow_provider_nrllm.outcomes.reasons import Reason
from airflow_provider_nrllm.readout.counts import Group, Period, Usage, pooled, together
from airflow_provider_nrllm.readout.groups import Dimension, Kind, Label
from airflow_provider_nrllm.readout.page import as_html
from airflow_provider_nrllm.readout.periods import PeriodWidth, between
from airflow_provider_nrllm.readout.runs import (
    PAGE_RECORDS,
    PAGE_RUNS,
    LinkTemplate,
    RunsShown,
    runs_json,
    runs_tables,
    write_csv,
)
from tests.typo3.readouts import FORMULA, MARCH, SCRIPT
from tests.typo3.reports import AUDIT, NAMES, RUNS, WORLD, answered, explicit, observed, readout

BY_MODEL = (Dimension.SERVED_MODEL,)
LINK = LinkTemplate.of("https://www.example.org/typo3/record/edit?edit[{table}][{uid}]=edit")


def shown(runs, limit=PAGE_RUNS):
    found = RunsShown(limit)
    for run in runs:
        found.add(run)
    return found


def written(runs, link=None):
    text = io.StringIO(newline="")
    write_csv(text, runs, link)
    return list(csv.DictReader(io.StringIO(text.getvalue(), newline="")))


def test_a_row_holds_a_run_with_its_records_group_and_reason():
    records = (Target("tt_content", 42), Target("pages", 7))
    (row,) = written([answered("r1", "unknown", records=records, settled=MARCH + 60, reason="trimmed")], LINK)
    expected = {
        "site": "nrllm_default",
        "run": "r1",
        "source": "observed",
        "outcome": "unknown",
        "at": "2026-03-01T00:00:00Z",
        "settled": "2026-03-01T00:01:00Z",
        "group_1": "model-a",
        "kind_1": "named",
        "group_2": "",
        "kind_2": "",
        "records": "tt_content:42 pages:7",
        "links": "https://www.example.org/typo3/record/edit?edit[tt_content][42]=edit "
        "https://www.example.org/typo3/record/edit?edit[pages][7]=edit",
        "reason": "trimmed",
    }
    assert expected == row


def test_what_has_no_run_has_no_records_and_has_not_settled():
    (row,) = written([answered("r1", "helpful", settled=None)])
    assert ("explicit", "", "", "") == (row["source"], row["settled"], row["records"], row["links"])


def test_every_run_is_in_the_csv_and_no_cell_is_a_formula():
    rows = written(RUNS)
    assert len(RUNS) == len(rows)
    assert {"model-a", *NAMES, "'" + FORMULA} - {FORMULA} == {row["group_1"] for row in rows}


def test_the_page_shows_the_last_runs_of_each_source_and_says_of_how_many():
    runs = [answered(f"r{n}", "helpful" if n % 2 else "edited", MARCH + n) for n in range(10)]
    # In an order that is not that of time.
    found = shown([*runs[5:], *runs[:5]], limit=2)
    assert [["r8", "r6"], ["r9", "r7"]] == [[run.run for run in found.of(s)] for s in ("observed", "explicit")]
    table = runs_tables(found, BY_MODEL)["observed"]
    assert "Shown here: 2 of 5, the latest first, with the records that each run wrote. The file runs.csv has all." == (
        table.caption
    )


def test_no_more_runs_are_kept_than_are_shown():
    found = shown(answered(f"r{n}", "edited", MARCH + n) for n in range(2 * PAGE_RUNS))
    assert PAGE_RUNS == len(found.of("observed")) == len(runs_tables(found, BY_MODEL)["observed"].rows)


def test_a_source_without_a_run_has_no_table():
    assert ["observed"] == list(runs_tables(shown([answered("r1", "edited")]), BY_MODEL))
    assert {} == runs_tables(shown([]), BY_MODEL)


def test_a_run_of_very_many_records_does_not_make_the_page_long():
    records = tuple(Target("pages", uid) for uid in range(1, 5001))
    table = runs_tables(shown([answered("r1", "edited", records=records)]), BY_MODEL)["observed"]
    links = table.rows[0].cells[3].links
    assert (PAGE_RECORDS + 1, "and 4,997 more") == (len(links), links[-1].text)


def test_only_runs_of_several_sites_name_their_site():
    one = runs_tables(shown([answered("r1", "edited")]), BY_MODEL)["observed"]
    two = runs_tables(shown([answered("r1", "edited"), answered("r2", "edited", site="b")]), BY_MODEL)["observed"]
    assert (False, True) == ("Site" in one.head, "Site" in two.head)


def test_json_carries_what_the_page_shows():
    found = runs_json(shown([answered("r1", "edited", records=(Target("pages", 7),))]), LINK)
    assert found == json.loads(json.dumps(found))
    address = "https://www.example.org/typo3/record/edit?edit[pages][7]=edit"
    (last,) = found["observed"]["last"]
    assert [{"table": "pages", "uid": 7, "link": address}] == last["records"]
    assert (1, 0) == (found["observed"]["count"], found["explicit"]["count"])


def page(link=None):
    return as_html(WORLD, runs_tables(shown(RUNS), WORLD.grouping, link))


def test_the_runs_stand_behind_the_other_tables_of_their_source():
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", page())
    places = [titles.index(f"{source}: the {one} behind the figures") for source, one in (
        ("Observed", "runs"), ("Explicit", "rated results"),
    )]  # fmt: skip
    assert [8, 14] == places
    assert ["Observed"] * 9 + ["Explicit"] * 6 == [title.split(":")[0] for title in titles]


def test_a_record_is_a_link_only_where_there_is_a_template():
    assert "tx_news_domain_model_news:1" in page()
    assert "example.org" not in page()
    address = "https://www.example.org/typo3/record/edit?edit[tx_news_domain_model_news][1]=edit"
    assert f'<a href="{address}" rel="noreferrer">tx_news_domain_model_news:1</a>' in page(LINK)


def test_the_page_of_runs_escapes_every_name():
    assert SCRIPT not in page(LINK)


def test_what_data_holds_stays_within_its_place_of_a_link():
    run = answered('r"1/../?a=b', "edited", site="a&b", records=(Target("pages", 7),))
    link = LinkTemplate.of("https://www.example.org/{site}/{run}")
    assert "https://www.example.org/a%26b/r%221%2F..%2F%3Fa%3Db" == link.address(run, run.records[0])


@pytest.mark.parametrize(
    "text", ["javascript:alert({uid})", "/typo3/{table}", "https://a.example/{person}", "https://a.example/{", ""]
)
def test_what_is_no_address_of_the_web_is_refused(text):
    with pytest.raises(ValueError, match="expected an address such as"):
        LinkTemplate.of(text)


def test_a_million_outcomes_over_three_years_make_a_page_under_1_mb():
    months = list(between(date(2025, 1, 1), date(2027, 12, 1), PeriodWidth.MONTH))
    usage = Usage(100_000, 0.5, 100_000, 6e6, 100_000)

    def arm_over_time(configuration, model):
        told = tuple(Period(first, explicit(10, 5), observed(50, 20, 15, 15)) for first in months)
        rated, became = (replace(source, usage=usage) for source in pooled(told))
        key = (Label(Kind.NAMED, f"configuration-{configuration:06}"), Label(Kind.NAMED, f"provider/model-{model:010}"))
        return Group(key, rated, became, AUDIT, told)

    groups = [arm_over_time(configuration, model) for configuration in range(10) for model in range(30)]
    long = replace(
        readout(groups, together(group.periods for group in groups), audited=True, width=PeriodWidth.MONTH),
        grouping=(Dimension.CONFIGURATION, Dimension.SERVED_MODEL),
    )
    assert 1_080_000 == sum(group.observed.total for group in long.groups)
    records = tuple(Target("tx_news_domain_model_news", uid) for uid in range(100_000, 100_020))
    runs = (
        replace(answered(f"{n:08}-1111-4111-8111-111111111111", value, MARCH + n, records=records), key=groups[0].key)
        for n in range(PAGE_RUNS + 1)
        for value in ("unknown", "helpful")
    )
    tables = runs_tables(
        shown(replace(run, reason=f"{Reason.GONE}; {Reason.TRIMMED}") for run in runs), long.grouping, LINK
    )
    assert len(as_html(long, tables).encode()) < 1_000_000
