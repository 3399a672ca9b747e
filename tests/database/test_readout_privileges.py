"""A database user that may only do what docs/how-to/read-outcomes-by-model.md grants beside a derivation."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from airflow_provider_nrllm.exceptions import NrLlmOutcomeCheckError, NrLlmPrivilegeError
from airflow_provider_nrllm.hooks.audit import NrLlmEditedAuditHook
from airflow_provider_nrllm.hooks.readout import NrLlmReadoutHook
from airflow_provider_nrllm.operators.audit import NrLlmEditedAuditOperator
from airflow_provider_nrllm.operators.checks import NrLlmOutcomeCheckOperator
from airflow_provider_nrllm.operators.readout import NrLlmOutcomeReadoutOperator
from airflow_provider_nrllm.outcomes.reasons import NOT_LOOKED_UP, REFUSED, Reason
from tests.typo3.grants import TYPO3, USER, documented_grants, run_as_admin
from tests.typo3.loader import load_typo3
from tests.typo3.readouts import calls, outcome

PAGE = (Path(__file__).parents[2] / "docs/how-to/read-outcomes-by-model.md").read_text()


def grants(name):
    """Return the statements of the page: the readout's, and the audit's."""
    blocks = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    statements = [[statement.strip() for statement in block.split(";") if statement.strip()] for block in blocks]
    prefix = "" if name == "postgres" else "typo3."
    return [[statement.replace("typo3.", prefix) for statement in block] for block in statements]


@pytest.fixture
def restricted(server_site):
    """A site whose connection is that of a user who has no right yet but to be told what is missing."""
    first = documented_grants(server_site.name)
    run_as_admin(server_site, *[s for s in first if not re.match(r"GRANT (SELECT|USAGE ON SEQUENCE)", s)])
    server_site.define_connection(login=USER, password="change-me")
    load_typo3(server_site.engine, TYPO3)
    calls(server_site.engine, "02-human-edit", "a")
    outcome(server_site.engine, "02-human-edit", "edited")
    yield server_site
    if server_site.name == "postgres":
        run_as_admin(server_site, f"DROP OWNED BY {USER}")
    run_as_admin(server_site, f"DROP USER {USER}")


def read(site, **arguments):
    return NrLlmOutcomeReadoutOperator(task_id="readout", nrllm_conn_id=site.conn_id, **arguments).execute({})


def test_the_documented_user_reads_outcomes(restricted):
    run_as_admin(restricted, *grants(restricted.name)[0])
    assert NrLlmReadoutHook(restricted.conn_id).test_connection()[0]
    assert 1 == read(restricted)["observed"]["groups"][0]["edited"]
    assert 1 == read(restricted, range_of="run")["observed"]["groups"][0]["edited"]


def test_a_check_by_the_documented_user_says_what_it_could_not_look_at(restricted):
    run_as_admin(restricted, *grants(restricted.name)[0])
    outcome(restricted.engine, "unknown", "unknown")
    task = NrLlmOutcomeCheckOperator(task_id="check", nrllm_conn_id=restricted.conn_id, max_unknown=0.0, min_cases=1)
    with pytest.raises(NrLlmOutcomeCheckError, match=r"unknown 1 of 2.*How far sys_history reaches back is not known"):
        task.execute({})


def test_the_documented_user_writes_runs_and_says_what_it_may_not_look_up(restricted, tmp_path):
    of_derivation = documented_grants(restricted.name)
    run_as_admin(restricted, *grants(restricted.name)[0])
    outcome(restricted.engine, "05-unhide-only", "unknown")

    def reasons():
        read(restricted, runs=True, output_path=str(tmp_path))
        with (tmp_path / "runs.csv").open(newline="") as file:
            return {row["run"]: row["reason"] for row in csv.DictReader(file)}

    assert {"02-human-edit": "", "05-unhide-only": REFUSED} == reasons()
    run_as_admin(restricted, *(statement for statement in of_derivation if "t3ver_wsid" in statement))
    assert {"02-human-edit": "", "05-unhide-only": NOT_LOOKED_UP} == reasons()
    run_as_admin(restricted, *(statement for statement in of_derivation if "sys_history" in statement))
    assert {"02-human-edit": "", "05-unhide-only": Reason.FIELDS} == reasons()


def test_the_documented_user_audits(restricted):
    run_as_admin(restricted, *(s for s in documented_grants(restricted.name) if s.startswith("GRANT SELECT")))
    readout, audit = grants(restricted.name)
    run_as_admin(restricted, *readout)
    with pytest.raises(NrLlmPrivilegeError):
        read(restricted, edited_audit=True)
    run_as_admin(restricted, *audit)
    assert NrLlmEditedAuditHook(restricted.conn_id).test_connection()[0]
    outcome(restricted.engine, "01-untouched", "accepted_unchanged")
    outcome(restricted.engine, "06-form-save-no-change", "accepted_unchanged")
    figures = NrLlmEditedAuditOperator(task_id="audit", nrllm_conn_id=restricted.conn_id).execute({})["in_all"]
    # TYPO3 made both records as drafts, and nobody released them.
    assert (1, 2) == (figures["run_text"], figures["accepted_are"]["still_hidden"])


def test_where_the_column_that_hides_may_not_be_read_it_cannot_be_told_and_the_grant_is_named(restricted, caplog):
    run_as_admin(restricted, *(s for s in documented_grants(restricted.name) if s.startswith("GRANT SELECT")))
    readout, audit = grants(restricted.name)
    run_as_admin(restricted, *readout, *(statement for statement in audit if "hidden" not in statement))
    outcome(restricted.engine, "01-untouched", "accepted_unchanged")
    figures = NrLlmEditedAuditOperator(task_id="audit", nrllm_conn_id=restricted.conn_id).execute({})["in_all"]
    assert (1, 1) == (figures["run_text"], figures["accepted_are"]["cannot_be_told"])
    assert "GRANT SELECT (hidden, disabled, disable) ON tt_content" in caplog.text


def test_no_grant_of_the_page_is_of_a_person():
    given = " ".join(statement for block in grants("mariadb") for statement in block)
    assert not re.search(r"be_user|userid|suspended_state|approv", given)
