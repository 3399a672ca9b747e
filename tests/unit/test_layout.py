"""The house: rules import no SQL, statements no hook, hooks no operator, and nothing imports in a circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "airflow_provider_nrllm"

FOLDERS = (PACKAGE, "tests", "demo", "benchmarks")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
}

#: What says of itself that it knows neither Airflow nor SQL.
PURE = sorted(
    name
    for name, path in MODULES.items()
    if name.startswith(PACKAGE)
    and any(words in (ast.get_docstring(ast.parse(path.read_text())) or "") for words in ("Pure", "knows of Airflow"))
)


def imported_by(name: str) -> set[str]:
    """Return the modules of the project that a module imports when it is imported itself."""
    tree = ast.parse(MODULES[name].read_text())
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = f"{package}.{node.module}" if node.level else str(node.module)
            found |= {f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names}
    return found & MODULES.keys() - {name}


GRAPH = {name: imported_by(name) for name in MODULES}


def test_nothing_imports_in_a_circle():
    order = list(TopologicalSorter(GRAPH).static_order())
    assert len(MODULES) == len(order)


@pytest.mark.parametrize(
    ("door", "may_import_it"),
    [
        ("operators", ("operators", "get_provider_info")),
        ("sensors", ("sensors", "get_provider_info")),
        ("triggers", ("triggers", "sensors", "get_provider_info")),
        ("hooks", ("hooks", "operators", "sensors", "triggers", "get_provider_info")),
    ],
)
def test_no_import_runs_back_up(door, may_import_it):
    allowed = tuple(f"{PACKAGE}.{name}" for name in may_import_it)
    found = {
        (name, other)
        for name, others in GRAPH.items()
        for other in others
        if other.startswith(f"{PACKAGE}.{door}.") and name.startswith(PACKAGE) and not name.startswith(allowed)
    }
    assert set() == found


def test_each_subject_has_pure_rules():
    subjects = {name.split(".")[1] for name in PURE}
    assert subjects >= {"outcomes", "edits", "purge", "readout", "a2a", "scores"}


def test_what_is_pure_imports_nothing_of_airflow_or_sql():
    code = (
        f"import sys, importlib; [importlib.import_module(name) for name in {PURE!r}];"
        " print([name for name in sys.modules if name.split('.')[0] in ('airflow', 'sqlalchemy')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert "[]" == done.stdout.strip()


@pytest.mark.parametrize("folder", ["tests", "demo", "benchmarks"])
def test_no_test_module_and_no_conftest_is_imported_by_another(folder):
    tests = {name for name in MODULES if name.rpartition(".")[2].startswith(("test_", "conftest"))}
    found = {
        (name, other) for name, others in GRAPH.items() if name.startswith(folder) for other in others if other in tests
    }
    assert set() == found


def test_in_hooks_are_hooks_and_in_operators_operators():
    doors = {"hooks": "Hook", "operators": "Operator", "sensors": "Sensor", "triggers": "Trigger"}
    for folder, ending in doors.items():
        for path in (ROOT / PACKAGE / folder).glob("*.py"):
            classes = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
            if path.stem not in ("__init__", "arguments"):
                assert any(name.endswith(ending) for name in classes), path


def is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", sorted(name for name in MODULES if name.startswith("tests.")))
def test_an_assertion_has_the_expected_value_first(name):
    turned_round = [
        compared.lineno
        for asserted in ast.walk(ast.parse(MODULES[name].read_text()))
        if isinstance(asserted, ast.Assert)
        for compared in ast.walk(asserted.test)
        if isinstance(compared, ast.Compare) and isinstance(compared.ops[0], ast.Eq)
        if is_literal(compared.comparators[-1]) and not is_literal(compared.left)
    ]
    assert [] == turned_round
