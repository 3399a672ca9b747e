"""What Airflow sees of the package: modules without warnings, provider info, DAGs without import errors."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import airflow
import jsonschema
import pytest
from packaging.version import Version

from airflow_provider_nrllm.get_provider_info import get_provider_info

ROOT = Path(__file__).parent.parent.parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "airflow_provider_nrllm").rglob("*.py")
    if path.name != "__init__.py"
)
if Version(airflow.__version__) < Version("3.1"):
    # The page needs what came with 3.1, and there is no page before.
    MODULES.remove("airflow_provider_nrllm.ui.app")
DAGS = sorted((ROOT / "dags").glob("*.py"))

#: Imports with the deprecation warnings that are blamed on us turned into errors; Airflow has some of its own.
IMPORT = """
import importlib, runpy, sys, warnings
import airflow
ours = r"airflow_provider_nrllm|nrllm_|<run_path>|__main__"
warnings.filterwarnings("error", category=DeprecationWarning, module=ours)
for name in sys.argv[1:]:
    runpy.run_path(name) if name.endswith(".py") else importlib.import_module(name)
"""


def test_every_module_and_dag_is_imported_without_a_deprecation_warning():
    names = [*MODULES, *map(str, DAGS)]
    done = subprocess.run([sys.executable, "-c", IMPORT, *names], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, done.stderr)


def test_the_provider_info_is_what_airflow_asks_for():
    schema = json.loads((Path(airflow.__file__).parent / "provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


def test_the_entry_point_gives_the_provider_info():
    (found,) = entry_points(group="apache_airflow_provider", name="provider_info").select(
        module="airflow_provider_nrllm.get_provider_info"
    )
    assert "airflow-provider-nrllm" == found.load()()["package-name"]


def test_every_module_that_the_provider_info_names_is_there():
    info = get_provider_info()
    kinds = ("hooks", "operators", "sensors", "triggers")
    named = {module for kind in kinds for entry in info[kind] for module in entry["python-modules"]}
    assert named <= set(MODULES)


@pytest.mark.parametrize("path", DAGS, ids=lambda path: path.stem)
def test_an_example_dag_is_imported_without_an_error(path, load_dag):
    load_dag(path.stem)
