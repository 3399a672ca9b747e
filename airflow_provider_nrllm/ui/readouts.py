"""The readouts in a directory, as the readout operator writes them with ``dated_folders``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow.providers.common.compat.sdk import ObjectStoragePath

from airflow_provider_nrllm.readout.folders import newest_first

REPORT = "outcomes.html"

#: The longest report that is shown, in bytes: the api-server holds it in memory for each viewer.
LONGEST_REPORT = 20_000_000


class NoReadoutError(Exception):
    """There is no such site, readout or report."""


class UnfitReportError(Exception):
    """The report is there, and is not shown."""


class StorageError(Exception):
    """The storage did not answer. The message names the kind of the error alone: its text may hold an address."""


class Readouts:
    """
    The readouts below a directory: those of its own dated folders, and those of the folders of sites in it.

    Only reads. A name that is asked for is compared with what the directory lists, and never put into a path before.

    :param directory: a local path, or a URL that an ``ObjectStoragePath`` takes
    """

    #: The site whose dated folders lie in the directory itself.
    UNNAMED = ""

    def __init__(self, directory: str) -> None:
        with _storage():
            path = ObjectStoragePath(directory)
            self._files: Any = path.fs
            self._root: str = path.path.rstrip("/")
        self.name: str = self._root.rpartition("/")[2]

    def sites(self) -> dict[str, list[str]]:
        """Return the dated folders of each site that has one, the newest first."""
        folders = self._folders()
        found = {self.UNNAMED: newest_first(folders)}
        for folder in folders:
            if folder not in found[self.UNNAMED]:
                found[folder] = self._of_folder(folder)
        return {site: dated for site, dated in sorted(found.items()) if dated}

    def of(self, site: str) -> list[str]:
        """
        Return the dated folders of a site, the newest first.

        :raises NoReadoutError: if it has none, or there is no such site
        """
        folders = self._folders()
        if site != self.UNNAMED:
            if site not in folders:
                raise NoReadoutError
            folders = self._folders(site)
        if not (dated := newest_first(folders)):
            raise NoReadoutError
        return dated

    def report(self, site: str, folder: str) -> bytes:
        """
        Return the HTML report of a readout, as it was written.

        :raises NoReadoutError: if there is none
        :raises UnfitReportError: if it is too long, or lies outside of the directory
        """
        if folder not in self.of(site):
            raise NoReadoutError
        path = "/".join([self._root, *filter(None, [site]), folder, REPORT])
        with _storage():
            # Of a pipe, for one, no end would be read.
            if self._files.info(path)["type"] != "file":
                raise NoReadoutError
            if not self._is_inside(path):
                raise UnfitReportError("The report is a link that leads out of the directory of readouts.")
            with self._files.open(path, "rb") as file:
                text: bytes = file.read(LONGEST_REPORT + 1)
        if len(text) > LONGEST_REPORT:
            raise UnfitReportError(f"The report is longer than {LONGEST_REPORT // 1_000_000} MB.")
        return text

    def _of_folder(self, folder: str) -> list[str]:
        """Return the dated folders in a folder, which may be none of a site and closed to us, as ``lost+found`` is."""
        try:
            return newest_first(self._folders(folder))
        except NoReadoutError:
            return []
        except StorageError as error:
            if isinstance(error.__cause__, PermissionError):
                return []
            raise

    def _folders(self, site: str = UNNAMED) -> list[str]:
        """Return the names of the folders in the directory, or in the folder of a site."""
        path = f"{self._root}/{site}".rstrip("/") or "/"
        with _storage():
            # Other processes write the readouts: a listing of before would hide them.
            self._files.invalidate_cache()
            entries = self._files.ls(path, detail=True)
        return [entry["name"].rstrip("/").rpartition("/")[2] for entry in entries if entry["type"] == "directory"]

    def _is_inside(self, path: str) -> bool:
        """Return whether a local file lies in the directory once its links are followed; no other storage has links."""
        protocols = self._files.protocol if isinstance(self._files.protocol, tuple) else (self._files.protocol,)
        if "file" not in protocols:
            return True
        root = os.path.realpath(self._root or "/")
        return os.path.commonpath([root, os.path.realpath(path)]) == root


@contextmanager
def _storage() -> Iterator[None]:
    """Tell what is not there from a storage that does not answer, whose errors differ from storage to storage."""
    try:
        yield
    except (NoReadoutError, UnfitReportError):
        raise
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise NoReadoutError from error
    except Exception as error:
        raise StorageError(type(error).__name__) from error
