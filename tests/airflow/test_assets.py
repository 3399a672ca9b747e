"""The asset of a site's observed outcomes."""

import warnings
from urllib.parse import urlsplit

import pytest
from airflow.providers.common.compat.sdk import Asset

from airflow_provider_nrllm.assets import observed_outcomes_asset, sanitize_uri
from airflow_provider_nrllm.get_provider_info import get_provider_info


def test_the_asset_is_named_after_the_connection_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "nrllm://site-a.Live_1/observed-outcomes" == observed_outcomes_asset("site-a.Live_1").uri


@pytest.mark.parametrize(
    "uri",
    ["nrllm:///observed-outcomes", "nrllm://site/", "nrllm://site/outcomes", "nrllm://u:p@site/observed-outcomes"],
)
def test_a_uri_that_names_no_asset_is_refused(uri):
    with pytest.raises(ValueError, match="expected nrllm://<connection>/observed-outcomes"):
        sanitize_uri(urlsplit(uri))


@pytest.mark.parametrize("conn_id", ["", "a/b", "a b", "a?b"])
def test_a_connection_id_that_is_no_part_of_a_uri_is_refused(conn_id):
    with pytest.raises(ValueError, match="names no asset"):
        observed_outcomes_asset(conn_id)


def test_airflow_knows_the_scheme():
    try:
        from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime
    except ImportError:
        from airflow.providers_manager import ProvidersManager

        handlers = ProvidersManager().dataset_uri_handlers
    else:
        handlers = ProvidersManagerTaskRuntime().asset_uri_handlers
    assert handlers["nrllm"] is sanitize_uri


def test_both_lines_of_airflow_are_told_of_the_scheme():
    info = get_provider_info()
    assert info["asset-uris"] == info["dataset-uris"]
    assert Asset("nrllm://site/observed-outcomes").uri == observed_outcomes_asset("site").uri
