"""The plugin costs other processes next to nothing, and shows nothing where its page cannot be closed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points

import airflow
import pytest
from packaging.version import Version

from airflow_provider_nrllm.get_provider_info import get_provider_info
from airflow_provider_nrllm.operators.outcomes import NrLlmDeriveOutcomesOperator
from airflow_provider_nrllm.operators.readout import NrLlmOutcomeReadoutOperator
from airflow_provider_nrllm.plugin import NrLlmPlugin

#: Whether this Airflow has a place for the page.
SHOWN = Version(airflow.__version__) >= Version("3.1")

#: Prints what the plugin makes a process import that has loaded plugins before.
IMPORTED = """
import json, sys
import airflow.plugins_manager
from airflow.providers.common.compat.sdk import AirflowPlugin
before = set(sys.modules)
import airflow_provider_nrllm.plugin
print("\\n" + json.dumps(sorted(set(sys.modules) - before)))
"""

#: Prints the plugin's apps where Airflow's check of rights is not to be found.
WITHOUT_THE_CHECK = """
import sys
sys.modules["airflow.api_fastapi.core_api.security"] = None
from airflow_provider_nrllm.plugin import NrLlmPlugin
print("\\n" + str(NrLlmPlugin().fastapi_apps))
"""


def last_line_of(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_a_process_that_does_not_serve_the_page_imports_two_modules_for_it():
    # The package itself is there where Airflow has asked for the provider's metadata.
    assert ["airflow_provider_nrllm.plugin", "airflow_provider_nrllm.ui"] == [
        name
        for name in json.loads(last_line_of(IMPORTED))
        if "airflow_provider_nrllm" != name and not name.startswith("airflow.providers.common.compat")
    ]


def test_without_airflows_check_of_rights_nothing_is_mounted():
    assert "[]" == last_line_of(WITHOUT_THE_CHECK)


def test_from_airflow_3_1_on_there_is_an_entry_in_the_menu_and_an_app_built_once():
    assert ["nrllm/"] * SHOWN == [view["href"] for view in NrLlmPlugin.external_views]
    apps, again = NrLlmPlugin().fastapi_apps, NrLlmPlugin().fastapi_apps
    assert ["/nrllm"] * SHOWN == [app["url_prefix"] for app in apps]
    assert [id(app["app"]) for app in apps] == [id(app["app"]) for app in again]


def test_the_plugin_is_found_by_its_entry_point_and_named_in_the_provider_info():
    (found,) = entry_points(group="airflow.plugins", name="nrllm")
    (named,) = get_provider_info()["plugins"]
    assert NrLlmPlugin is found.load()
    assert named["plugin-class"] == found.value.replace(":", ".")


@pytest.mark.parametrize("operator", [NrLlmDeriveOutcomesOperator, NrLlmOutcomeReadoutOperator])
def test_the_tasks_link_to_the_page_relative_to_the_ui(operator):
    task = operator(task_id="task")
    links = {link.name: link.get_link(task, ti_key=None) for link in task.operator_extra_links}
    assert ({"AI outcomes": "nrllm/"} if SHOWN else {}) == links
