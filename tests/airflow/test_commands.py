"""The purge commands, run as processes."""

import os
import signal
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowException, AirflowFailException

from airflow_provider_nrllm.exceptions import NrLlmCommandError, NrLlmSettingError
from airflow_provider_nrllm.operators.purge import NrLlmPurgeOperator
from tests.typo3.command import StandIn


@pytest.fixture
def typo3(tmp_path):
    """A stand-in for TYPO3's command line."""
    return StandIn(tmp_path)


def purge(command, *, category="privacy", days=30, **arguments):
    """Run the operator."""
    NrLlmPurgeOperator(task_id="purge", category=category, days=days, command=command, **arguments).execute({})


@pytest.mark.parametrize("category", ["privacy", "telemetry", "session", "governance"])
def test_a_purge_gets_its_days(typo3, category):
    purge(typo3.command, category=category, days=timedelta(days=90))
    assert [["--ansi", f"nrllm:{category}:purge", "--days=90"]] == typo3.calls


def test_a_list_is_taken_word_by_word(typo3):
    purge([typo3.program, "a b", "$HOME", "; exit 9"])
    assert [["a b", "$HOME", "; exit 9", "nrllm:privacy:purge", "--days=30"]] == typo3.calls


@pytest.mark.parametrize("attack", ["; touch {}", "&& touch {}", "$(touch {})", "`touch {}`", "| touch {}", "> {}"])
def test_nothing_in_a_command_is_taken_for_shell_syntax(typo3, tmp_path, attack):
    touched = tmp_path / "touched"
    purge(f"{typo3.command} {attack.format(touched)}")
    assert not touched.exists()
    assert 1 == len(typo3.calls)


def test_a_program_may_stand_in_front(typo3):
    # As ssh, docker exec and kubectl exec do, env takes the command as the words after its own.
    purge(f"env TYPO3_CONTEXT=Production {typo3.command}")
    assert [["--ansi", "nrllm:privacy:purge", "--days=30"]] == typo3.calls


def test_what_a_remote_shell_gets_of_a_purge_needs_no_quotes(typo3):
    # ssh joins its words with spaces and hands them to the shell of the other side.
    purge(["sh", "-c", '"$0" $*', typo3.program])
    assert [["nrllm:privacy:purge", "--days=30"]] == typo3.calls


def test_the_command_runs_in_the_given_directory(typo3, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "typo3").symlink_to(typo3.program)
    purge("./typo3", cwd=str(tmp_path / "site"))
    assert 1 == len(typo3.calls)


def test_the_output_is_logged(typo3, caplog, capsys):
    purge(typo3.command)
    assert "output of nrllm:privacy:purge" in caplog.text + capsys.readouterr().out


def test_a_refused_option_is_not_retried(typo3):
    typo3.write(exit_code=2)
    with pytest.raises(NrLlmCommandError, match="exit code 2"):
        purge(typo3.command)
    assert issubclass(NrLlmCommandError, AirflowFailException)


@pytest.mark.parametrize("exit_code", [1, 3, 126, 255])
def test_any_other_failure_is_retried(typo3, exit_code):
    typo3.write(exit_code=exit_code)
    with pytest.raises(AirflowException, match=f"exit code {exit_code}") as failure:
        purge(typo3.command)
    assert not isinstance(failure.value, AirflowFailException)


@pytest.mark.parametrize("command", ["no/such/typo3", "/", "/etc/passwd"])
def test_a_program_that_cannot_be_started_is_named_and_not_retried(command):
    with pytest.raises(NrLlmCommandError, match=f"'{command}' cannot be started"):
        purge(command)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"category": "outcome"}, "category is 'outcome'"),
        ({"days": 0}, "1 to 36500"),
        ({"days": 1_000_000}, "1 to 36500"),
        ({"command": ""}, "expected TYPO3's command line"),
        ({"command": []}, "expected TYPO3's command line"),
        ({"command": "'typo3"}, "No closing quotation"),
    ],
    ids=str,
)
def test_an_argument_that_cannot_be_is_refused_when_the_dag_is_parsed(arguments, message):
    with pytest.raises(ValueError, match=message):
        NrLlmPurgeOperator(task_id="purge", **{"category": "privacy", **arguments})


@pytest.mark.parametrize("days", ["{{ days }}", "{{ '0' }}"])
def test_a_template_that_renders_no_days_is_not_retried(days):
    with pytest.raises(NrLlmSettingError, match="1 to 36500"):
        purge("true", days=days)


def test_a_time_out_ends_the_command_and_what_it_started(tmp_path):
    started = tmp_path / "started"
    program = f"import subprocess; subprocess.run(['sh', '-c', 'echo $$ > {started}; exec sleep 60'])"

    def raise_time_out(*_):
        raise TimeoutError

    def signal_when_started():
        while not (started.exists() and started.read_text()):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGUSR1)

    # As execution_timeout does it: an exception out of a signal's handler, in the middle of a line.
    before = signal.signal(signal.SIGUSR1, raise_time_out)
    try:
        threading.Thread(target=signal_when_started, daemon=True).start()
        with pytest.raises(TimeoutError):
            purge([sys.executable, "-c", program])
    finally:
        signal.signal(signal.SIGUSR1, before)
    # The signal has been sent; that it has taken effect, the system tells in its own time.
    deadline = time.monotonic() + 20
    while is_running(int(started.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(int(started.read_text()))


def is_running(process):
    """Whether a process is there and no mere entry that nobody has waited for."""
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_what_airflow_resolves_later_is_checked_later():
    with DAG(dag_id="later", params={"days": 30}) as dag:
        before = NrLlmPurgeOperator(task_id="before", category="session")
        later = NrLlmPurgeOperator(
            task_id="later", category="privacy", days=dag.param("days"), command=["ssh", before.output]
        )
    assert {"before"} == later.upstream_task_ids


def test_a_killed_task_ends_the_command_and_what_it_started(tmp_path):
    started = tmp_path / "started"
    program = f"import subprocess; subprocess.run(['sh', '-c', 'echo $$ > {started}; exec sleep 60'])"
    operator = NrLlmPurgeOperator(task_id="purge", category="privacy", command=[sys.executable, "-c", program])

    def kill():
        deadline = time.monotonic() + 20
        while not (started.exists() and started.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        operator.on_kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(AirflowException, match="exit code -15"):
        operator.execute({})
    killer.join()
    pid = started.read_text().strip()
    # Ended soon, at most not yet reaped.
    status = Path(f"/proc/{pid}/stat")
    deadline = time.monotonic() + 20
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.05)
