"""What the page shows, and what it says where there is nothing to show."""

from __future__ import annotations

import os
from urllib.parse import quote

import pytest

NEWEST, EARLIER = "2026-03-08T000000Z", "2026-03-01T000000Z"


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "readouts"


def write(directory, text="<p>figures", folder=NEWEST):
    (directory / folder).mkdir(parents=True)
    (directory / folder / "outcomes.html").write_text(text)


@pytest.fixture
def ask(api_server, directory):
    """Ask the page, which shows the directory."""

    def answer(path, **options):
        return api_server.ask(f"/nrllm/{path}", **{"readout_path": f"file://{directory}", **options})

    return answer


def test_the_sites_stand_with_their_newest_readout(ask, directory):
    for site in ("b", "a"):
        write(directory / site)
        write(directory / site, folder=EARLIER)
    body = ask("").body
    assert 'href="readout?site=a"' in body
    assert body.index("<bdi>a</bdi>") < body.index("<bdi>b</bdi>")
    assert "<td>2026-03-08 00:00 UTC</td><td>1</td>" in body


def test_of_one_site_alone_the_newest_readout_is_shown_at_once(ask, directory):
    write(directory / "a")
    write(directory / "a", folder=EARLIER)
    body = ask("").body
    assert f'<iframe src="report?site=a&amp;of={NEWEST}"' in body
    assert f'href="readout?site=a&amp;of={EARLIER}"' in body


def test_readouts_in_the_directory_itself_bear_its_name(ask, directory):
    write(directory)
    assert "<bdi>readouts</bdi>" in ask("").body


def test_an_earlier_readout_leads_to_the_newest(ask, directory):
    write(directory / "a")
    write(directory / "a", folder=EARLIER)
    body = ask(f"readout?site=a&of={EARLIER}").body
    assert f'<iframe src="report?site=a&amp;of={EARLIER}"' in body
    assert '<a href="readout?site=a">The newest: 2026-03-08 00:00 UTC</a>' in body


def test_a_report_is_shown_as_it_was_written(ask, directory):
    write(directory, "<!DOCTYPE html><p>façade {{ 7 * 7 }} \N{ROCKET}")
    assert "<!DOCTYPE html><p>façade {{ 7 * 7 }} \N{ROCKET}" == ask(f"report?of={NEWEST}").body


def test_without_its_folder_the_newest_report_is_shown(ask, directory):
    write(directory, "earlier", folder=EARLIER)
    write(directory, "newest")
    assert "newest" == ask("report").body


def test_a_readout_written_after_a_look_is_seen_by_the_next(ask, directory):
    write(directory, folder=EARLIER)
    ask("")
    write(directory)
    assert f"of={NEWEST}" in ask("").body


def test_latest_and_other_folders_and_files_are_no_readouts(ask, directory):
    write(directory, folder=NEWEST)
    write(directory, folder="latest")
    write(directory, folder="drafts")
    (directory / "notes.txt").write_text("x")
    assert "All readouts" not in ask("").body


@pytest.mark.parametrize("setting", ["", "  "])
def test_without_a_path_three_sentences_say_what_to_do(ask, setting):
    answer = ask("", readout_path=setting)
    assert (404, 3) == (answer.status, answer.body.count("<p>"))
    assert "AIRFLOW__NRLLM__READOUT_PATH" in answer.body
    assert 404 == ask("readout", readout_path=setting).status


def test_before_the_first_readout_the_page_says_what_writes_one(ask, directory):
    for made in (False, True):
        if made:
            directory.mkdir()
        answer = ask("")
        assert 404 == answer.status
        assert "dated_folders=True" in answer.body


@pytest.mark.parametrize(
    "name",
    [
        "..", "../..", "../secret", "a/../../secret", "/etc", "%2e%2e", "..%2fsecret", "a%00", "latest", "notes.txt",
        ".", "a/.", "~", "file:///etc", "\\..\\secret", "a\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("argument", ["site", "of"])
@pytest.mark.parametrize("route", ["readout", "report"])
def test_a_name_never_leaves_the_directory(ask, directory, name, argument, route):
    write(directory.parent / "secret", "secret")
    write(directory / "a")
    write(directory / "a", folder="latest")
    (directory / "a" / "notes.txt").write_text("x")
    query = {"site": "a", "of": NEWEST} | {argument: name}
    answer = ask(f"{route}?" + "&".join(f"{key}={quote(value, safe='%')}" for key, value in query.items()))
    assert 404 == answer.status
    assert "secret" not in answer.body


def test_a_link_out_of_the_directory_is_not_followed(ask, directory):
    write(directory.parent / "secret", "secret")
    (directory / NEWEST).mkdir(parents=True)
    os.symlink(directory.parent / "secret" / NEWEST / "outcomes.html", directory / NEWEST / "outcomes.html")
    answer = ask(f"report?of={NEWEST}")
    assert 502 == answer.status
    assert "secret" not in answer.body


def test_a_pipe_is_no_report(ask, directory):
    (directory / NEWEST).mkdir(parents=True)
    os.mkfifo(directory / NEWEST / "outcomes.html")
    assert 404 == ask(f"report?of={NEWEST}").status


def test_the_name_of_a_site_is_text(ask, directory):
    hostile = '"><script>alert(1)<'
    write(directory / hostile)
    write(directory / "a")
    listed, shown = ask(""), ask("readout?site=%22%3E%3Cscript%3Ealert(1)%3C")
    assert [200, 200] == [listed.status, shown.status]
    assert "<script" not in listed.body + shown.body


@pytest.mark.parametrize("path", ["", "readout", f"report?of={NEWEST}", "nothing"])
def test_no_script_runs_and_nothing_is_kept(ask, directory, path):
    write(directory, "<script>document.title = 'run'</script>")
    headers = ask(path).headers
    assert headers["content-security-policy"].startswith("sandbox ")
    assert "allow-scripts" not in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'self'" in headers["content-security-policy"]
    assert ("nosniff", "no-referrer", "private, no-store") == tuple(
        headers[name] for name in ("x-content-type-options", "referrer-policy", "cache-control")
    )


def test_a_report_is_not_of_airflows_origin(ask, directory):
    write(directory)
    assert "allow-same-origin" not in ask(f"report?of={NEWEST}").headers["content-security-policy"]


def test_a_report_of_50_mb_is_a_sentence(ask, directory):
    write(directory, "x" * 50_000_000)
    answer = ask(f"report?of={NEWEST}")
    assert (502, True) == (answer.status, "longer than 20 MB" in answer.body)


def test_a_report_that_is_missing_is_a_sentence(ask, directory):
    (directory / NEWEST).mkdir(parents=True)
    answer = ask(f"report?of={NEWEST}")
    assert (404, True) == (answer.status, "There is no such readout." in answer.body)


@pytest.mark.parametrize(
    "path",
    [
        "s3://key_of_ours:secret@bucket/readouts",  # what opens it is not installed
        "nothing-known://secret/readouts",
        "http://127.0.0.1:9/secret",  # nobody listens
    ],
)
def test_a_storage_that_does_not_answer_is_a_sentence_without_its_address(ask, path):
    answer = ask("", readout_path=path)
    assert (503, True) == (answer.status, "The storage of the readouts cannot be read" in answer.body)
    assert "secret" not in answer.body
    assert "Traceback" not in answer.body


def test_a_head_has_no_body(ask, directory):
    write(directory)
    assert (200, "") == ((answer := ask("", method="HEAD")).status, answer.body)
