"""The provider info that Airflow reads."""

from __future__ import annotations

from typing import Any

from airflow_provider_nrllm import __version__

_ASSET_URIS = {"schemes": ["nrllm"], "handler": "airflow_provider_nrllm.assets.sanitize_uri"}


def get_provider_info() -> dict[str, Any]:
    """Return the provider's metadata, as the entry point ``apache_airflow_provider`` asks for it."""
    return {
        "package-name": "airflow-provider-nrllm",
        "name": "nr_llm",
        # No underscore: "airflow providers list" takes it out of a description.
        "description": "What became of the records that AI runs of the TYPO3 extension nr-llm wrote.",
        "versions": [__version__],
        "integrations": [
            {
                "integration-name": "nr_llm",
                "external-doc-url": "https://github.com/netresearch/t3x-nr-llm",
                "tags": ["software"],
            }
        ],
        "hooks": [
            {
                "integration-name": "nr_llm",
                "python-modules": [
                    "airflow_provider_nrllm.hooks.a2a",
                    "airflow_provider_nrllm.hooks.audit",
                    "airflow_provider_nrllm.hooks.nrllm",
                    "airflow_provider_nrllm.hooks.readout",
                    "airflow_provider_nrllm.hooks.scores",
                ],
            }
        ],
        "operators": [
            {
                "integration-name": "nr_llm",
                "python-modules": [
                    "airflow_provider_nrllm.operators.a2a",
                    "airflow_provider_nrllm.operators.audit",
                    "airflow_provider_nrllm.operators.checks",
                    "airflow_provider_nrllm.operators.outcomes",
                    "airflow_provider_nrllm.operators.purge",
                    "airflow_provider_nrllm.operators.readout",
                    "airflow_provider_nrllm.operators.scores",
                ],
            }
        ],
        "sensors": [
            {"integration-name": "nr_llm", "python-modules": ["airflow_provider_nrllm.sensors.a2a"]},
        ],
        "triggers": [
            {"integration-name": "nr_llm", "python-modules": ["airflow_provider_nrllm.triggers.a2a"]},
        ],
        "extra-links": ["airflow_provider_nrllm.links.NrLlmPageLink"],
        "plugins": [{"name": "nrllm", "plugin-class": "airflow_provider_nrllm.plugin.NrLlmPlugin"}],
        "config": {
            "nrllm": {
                "description": "What became of the records that AI runs of nr_llm wrote.",
                "options": {
                    "readout_path": {
                        "description": (
                            'The directory whose readouts the page "AI outcomes" shows, and its folders\' as those '
                            "of a site each: a local path of the api-server, or a URL that an ObjectStoragePath takes, "
                            "with its connection. Empty: the page says what to do."
                        ),
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "s3://aws_default@reports/nrllm",
                        "default": "",
                    }
                },
            }
        },
        "asset-uris": [_ASSET_URIS],
        # What Airflow 2 reads.
        "dataset-uris": [_ASSET_URIS],
    }
