"""What can be checked of an argument when the DAG is parsed: nothing, as long as it is a template."""

from __future__ import annotations


def is_template(value: object) -> bool:
    """Whether a value is text that Airflow renders before the task runs, and so can be checked only then."""
    return isinstance(value, str) and "{" in value
