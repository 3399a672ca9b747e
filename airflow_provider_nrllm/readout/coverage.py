"""Coverage of a range: the runs made in it that have an outcome, and why the others have none. Pure."""

from __future__ import annotations

from dataclasses import dataclass

#: How long after a run has settled, in seconds, it may still be without an outcome; then it is overdue.
ANSWERED_WITHIN = 2 * 86400


@dataclass(frozen=True, slots=True)
class Coverage:
    """
    The runs made in a range; every run that wrote is answered, watched or overdue.

    :param made: runs with a uuid
    :param written: those that wrote a record
    :param answered: those of them that have an observed outcome
    :param watched: those without one that go on, whose records are still watched, or that settled within
        :data:`ANSWERED_WITHIN`
    """

    made: int = 0
    written: int = 0
    answered: int = 0
    watched: int = 0

    @property
    def overdue(self) -> int:
        """Those that settled longer ago and still have no outcome: the derivation did not answer them."""
        return self.written - self.answered - self.watched

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(
            self.made + other.made,
            self.written + other.written,
            self.answered + other.answered,
            self.watched + other.watched,
        )

    @property
    def counts(self) -> dict[str, int]:
        """The counts by their names, in the order in which they are read."""
        return {
            "made": self.made,
            "with_writes": self.written,
            "answered": self.answered,
            "still_watched": self.watched,
            "overdue": self.overdue,
        }

    @property
    def in_words(self) -> str:
        """The counts as one line."""
        told = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in list(self.counts.items())[1:])
        line = f"Runs made in the range: {self.made:,}; of them {told}."
        return f"{line} {OVERDUE}" if self.overdue else line


OVERDUE = (
    "What is overdue settled more than two days ago and has no outcome: see docs/how-to/schedule.md and "
    "docs/how-to/backfill.md for how it is derived."
)
