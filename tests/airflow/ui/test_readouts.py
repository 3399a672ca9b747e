"""Readouts are found on storages that list what is no site."""

from __future__ import annotations

import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from airflow_provider_nrllm.ui.readouts import Readouts, StorageError

FOLDER = "2026-03-08T000000Z"


class WithOneFolder(LocalFileSystem):
    """A directory of which one folder cannot be listed."""

    def __init__(self, error):
        super().__init__(skip_instance_cache=True)
        self.error = error

    def ls(self, path, *args, **kwargs):
        if path.endswith("/lost+found"):
            raise self.error
        return super().ls(path, *args, **kwargs)


@pytest.fixture
def directory(tmp_path):
    for folder in (f"a/{FOLDER}", "lost+found"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def readouts_on(files, directory):
    readouts = Readouts(str(directory))
    readouts._files = files
    return readouts


@pytest.mark.parametrize("error", [PermissionError(), FileNotFoundError(), NotADirectoryError()])
def test_a_folder_that_is_closed_or_gone_hides_no_site(directory, error):
    assert {"a": [FOLDER]} == readouts_on(WithOneFolder(error), directory).sites()


def test_a_storage_that_fails_is_not_taken_for_one_without_readouts(directory):
    with pytest.raises(StorageError, match="TimeoutError"):
        readouts_on(WithOneFolder(TimeoutError("secret")), directory).sites()


def test_an_object_storage_is_read_like_a_directory():
    files = MemoryFileSystem()
    files.pipe({f"/bucket/readouts/a/{FOLDER}/outcomes.html": b"<p>figures", "/bucket/readouts/notes.txt": b""})
    readouts = readouts_on(files, "/bucket/readouts")
    assert {"a": [FOLDER]} == readouts.sites()
    assert b"<p>figures" == readouts.report("a", FOLDER)
