"""The figures of a run as its runtime counted them, written with its end: nobody may write them after it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, Final

#: What an INT takes on every engine, and what a DECIMAL(10, 6) does.
_MOST: Final = 2**31 - 1
_MOST_COST: Final = Decimal("9999.999999")


@dataclass(frozen=True, slots=True)
class RunFigures:
    """
    What a run took, by the names of its row's columns; None leaves a column as it is.

    :param iterations: how many rounds it made
    :param truncated: whether it was cut off
    :param total_prompt_tokens: the tokens of its prompts
    :param total_completion_tokens: the tokens of its answers
    :param total_tokens: both
    :param estimated_cost: what it cost, in the installation's currency, to six places
    :param termination_reason: why it ended, as nr_llm names it, at most 32 characters
    :param error_class: the class of the error that ended it, at most 255 characters
    """

    iterations: int | None = None
    truncated: bool | None = None
    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_tokens: int | None = None
    estimated_cost: Decimal | float | None = None
    termination_reason: str | None = None
    error_class: str | None = None

    def columns(self) -> dict[str, Any]:
        """
        Return what to set of a run's row.

        :raises ValueError: names the invalid figure, and what was expected
        """
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: _checked(name, value) for name, value in given.items() if value is not None}


def _checked(name: str, value: Any) -> Any:
    if name == "estimated_cost":
        return _cost(value)
    if name == "truncated":
        if not isinstance(value, bool):
            raise ValueError(f"figures.truncated is a {type(value).__name__}; expected True or False")
        return int(value)
    longest = {"termination_reason": 32, "error_class": 255}.get(name)
    if longest is not None:
        if not isinstance(value, str) or len(value) > longest or not value.isprintable():
            raise ValueError(f"figures.{name}: expected a text of at most {longest} printable characters")
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise ValueError(f"figures.{name} is {value!r}; expected a whole number from 0 to {_MOST}")
    return value


def _cost(value: Any) -> Decimal:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        cost = Decimal(str(value))
        if cost.is_finite() and 0 <= cost <= _MOST_COST:
            return cost.quantize(Decimal("0.000001"))
    raise ValueError(f"figures.estimated_cost is {value!r}; expected a number from 0 to {_MOST_COST}")
