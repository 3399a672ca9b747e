"""The errors of the provider. Only :class:`NrLlmTargetError` is retried: all others need a person first."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException


class NrLlmConnectionError(AirflowFailException):
    """The Airflow connection is missing, is no SQL connection, or its provider is not installed."""


class NrLlmSchemaError(AirflowFailException):
    """A table or column of TYPO3 or nr_llm is not in the database."""


class NrLlmPrivilegeError(AirflowFailException):
    """The database user lacks a privilege."""


class NrLlmExtraError(AirflowFailException):
    """An extra of the package is not installed."""


class NrLlmPartitionError(AirflowFailException):
    """The partition of an Airflow run cannot be derived: it is not closed yet, or it is no time range."""


class NrLlmUnansweredError(AirflowFailException):
    """A purge would take runs that have no observed outcome yet."""


class NrLlmCommandError(AirflowFailException):
    """A TYPO3 command cannot be started, or does not take what it is given."""


class NrLlmSettingError(AirflowFailException):
    """A templated argument was rendered to what it cannot be."""


class NrLlmA2AViolationError(AirflowFailException):
    """Stored A2A tasks or their journal break a promise of ADR-282."""


class NrLlmA2ATaskNotFoundError(AirflowFailException):
    """There is no such A2A task, or it went with its run."""


class NrLlmOutcomeCheckError(AirflowFailException):
    """A share of outcomes is past a bound that the user set."""


class NrLlmScoresError(AirflowFailException):
    """A target refused scores or traces."""


class NrLlmTargetError(AirflowException):
    """A target of scores cannot be reached or is overloaded; Airflow retries the task."""
