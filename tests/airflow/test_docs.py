"""What the README and the docs say is true: the DAG runs, connections open, links lead somewhere."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import BaseHook

import airflow_provider_nrllm

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]

#: An address of a file or folder of this repository, as pyproject.toml tells PyPI where that is.
HOME = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Homepage"]
OURS = re.compile(
    re.escape(HOME).replace("github", r"(?:raw\.githubusercontent|github)") + r"/(?:(?:blob|tree)/)?main/(.*)"
)


def links_of(page):
    """Return where a page's links lead, without the places within pages."""
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", page.read_text())]
    return [link for link in links if link]


try:
    import airflow.sdk

    HAS_TIMETABLE = hasattr(airflow.sdk, "CronDataIntervalTimetable")
except ImportError:
    HAS_TIMETABLE = False

#: What the README says to import before Airflow 3.2.
BEFORE_3_2 = (
    "from airflow.providers.common.compat.sdk import DAG\n"
    "from airflow.timetables.interval import CronDataIntervalTimetable\n"
)


def test_the_dag_of_the_readme_is_a_dag(tmp_path, load_dag):
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    assert len(code.splitlines()) <= 16
    if not HAS_TIMETABLE:
        code = re.sub(r"from airflow\.sdk import .*\n", BEFORE_3_2, code)
    (tmp_path / "readme.py").write_text(code)
    dag = load_dag("what_became_of_it", tmp_path / "readme.py")
    assert ["derive_outcomes"] == [task.task_id for task in dag.tasks]


@pytest.mark.parametrize(
    ("value", "conn_type"),
    zip(re.findall(r"AIRFLOW_CONN_NRLLM_DEFAULT='(.*)'", README), ["mysql", "postgres", "sqlite"], strict=True),
)
def test_the_connections_of_the_readme_are_of_their_engines(monkeypatch, value, conn_type):
    monkeypatch.setenv("AIRFLOW_CONN_NRLLM_DEFAULT", value)
    assert BaseHook.get_connection("nrllm_default").conn_type == conn_type


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file(page):
    missing = []
    for link in links_of(page):
        ours = OURS.fullmatch(link)
        if "://" in link and not ours:
            continue
        if not (ROOT / ours[1] if ours else page.parent / link).exists():
            missing.append(link)
    assert [] == missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_out_of_what_is_published_together_is_a_whole_address(page):
    # PyPI shows the README alone, and the docs' site the docs alone.
    published = ROOT / "docs" if page.is_relative_to(ROOT / "docs") else page
    relative = [link for link in links_of(page) if "://" not in link]
    assert [] == [link for link in relative if not (page.parent / link).resolve().is_relative_to(published)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_json_of_a_page_is_json(page):
    for block in re.findall(r"```json\n(.*?)```", page.read_text(), re.DOTALL):
        assert json.loads(block)


def classes_that_users_see():
    """Return the operators, hooks, sensors and triggers of the package."""
    found = {}
    for module in pkgutil.walk_packages(airflow_provider_nrllm.__path__, "airflow_provider_nrllm."):
        if module.name.split(".")[1] in ("hooks", "operators", "sensors", "triggers"):
            for name, value in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
                if name.startswith("NrLlm") and value.__module__ == module.name:
                    found[name] = value
    return found


SEEN = classes_that_users_see()


@pytest.mark.parametrize("name", sorted(SEEN))
def test_every_argument_stands_in_the_reference(name):
    sections = [
        section
        for page in sorted((ROOT / "docs" / "reference").glob("*.md"))
        for section in page.read_text().split("\n## ")
        if name in section
    ]
    arguments = inspect.signature(SEEN[name].__init__).parameters.keys() - {"self", "args", "kwargs"}
    assert set() == {argument for argument in arguments if not any(f"`{argument}`" in section for section in sections)}
