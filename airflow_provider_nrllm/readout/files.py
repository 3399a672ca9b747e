"""The files of a readout, in a directory of any storage that Airflow knows."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from tempfile import TemporaryFile
from typing import Any

from airflow.providers.common.compat.sdk import ObjectStoragePath

from airflow_provider_nrllm.exceptions import NrLlmExtraError
from airflow_provider_nrllm.readout.cells import Table
from airflow_provider_nrllm.readout.counts import Readout
from airflow_provider_nrllm.readout.exports import as_json
from airflow_provider_nrllm.readout.folders import LATEST, folder_of, newest_first
from airflow_provider_nrllm.readout.runs import AnsweredRun, LinkTemplate, RunsShown, runs_json, runs_tables, write_csv
from airflow_provider_nrllm.readout.spreadsheet import as_csv

_log = logging.getLogger(__name__)

#: Draws the page of a readout, with the tables of its runs.
PageWriter = Callable[[Readout, Mapping[str, Table]], str]


def page_writer() -> PageWriter:
    """
    Return what writes the page.

    :raises NrLlmExtraError: where the extra is not installed
    """
    try:
        from airflow_provider_nrllm.readout.page import as_html
    except ImportError as error:
        raise NrLlmExtraError(
            f"The HTML page of a readout cannot be drawn: {error}. Expected Jinja: "
            "pip install 'airflow-provider-nrllm[readout]', or leave out the argument output_path."
        ) from error
    return as_html


def write_files(
    path: str | ObjectStoragePath,
    readout: Readout,
    as_html: PageWriter,
    *,
    dated_folders: bool,
    runs: Iterable[AnsweredRun] | None = None,
    link: LinkTemplate | None = None,
) -> Iterator[str]:
    """
    Write the files and yield where they are.

    :param path: the directory
    :param as_html: what :func:`page_writer` returned
    :param dated_folders: whether they go into a folder named by the end of the range, and the newest into ``latest``
    :param runs: those behind the figures, read one by one as they are written; None for no ``runs.csv``
    :param link: how the address of a record is made
    """
    directory = path if isinstance(path, ObjectStoragePath) else ObjectStoragePath(str(path))
    # First into a file of this machine, of any length: object storage has no file that grows.
    with TemporaryFile("w+", newline="", encoding="utf-8") as rows:
        shown = RunsShown() if runs is None else write_csv(rows, runs, link)
        rows.flush()
        figures = as_json(readout) if runs is None else {**as_json(readout), "runs": runs_json(shown, link)}
        contents = {
            "outcomes.json": json.dumps(figures, ensure_ascii=False, indent=1) + "\n",
            "outcomes.csv": as_csv(readout),
            "outcomes.html": as_html(readout, runs_tables(shown, readout.grouping, link)),
        }
        for folder in _folders(directory, readout.end) if dated_folders else [directory]:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in contents.items():
                (folder / name).write_bytes(text.encode("utf-8"))
                yield _written(folder / name)
            if runs is not None:
                _copy(rows.buffer, folder / "runs.csv")
                yield _written(folder / "runs.csv")


def _written(path: ObjectStoragePath) -> str:
    _log.info("Written: %s", path)
    return str(path)


def _copy(source: Any, path: Any) -> None:
    source.seek(0)
    with path.open("wb") as file:
        shutil.copyfileobj(source, file)


def _folders(directory: ObjectStoragePath, end: int) -> Iterator[ObjectStoragePath]:
    """Yield the dated folder that the files go into, and the latest."""
    name = folder_of(end)
    yield directory / name
    # A backfill of an older range leaves the newest where it is.
    if newest_first(path.name for path in directory.iterdir())[0] == name:
        yield directory / LATEST
