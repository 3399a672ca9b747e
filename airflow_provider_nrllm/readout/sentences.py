"""The sentences that stand with every readout, in each format. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_nrllm.readout.counts import Readout
from airflow_provider_nrllm.readout.groups import filters_text, readable

#: ADR-176: no promotion rule.
NO_RECOMMENDATION = (
    "This readout makes no recommendation: it shows counts, shares and how sure they are, and never says which "
    "model or configuration to use. The groups were not assigned at random, and explicit and observed outcomes "
    "measure different things: no figure here is made of both."
)

#: ADR-185: how far the observed outcomes can be trusted. Said under them, always.
OBSERVED_NOTES = (
    "EDITED counts every change that a person made to a written record within the window, whether or not it is about "
    "the text that the run wrote.",
    "ACCEPTED UNCHANGED says that nobody changed the record within the window; it does not show that anybody read it: "
    "a hidden draft that nobody opened is accepted too.",
    "Neither of them decides for or against a model.",
)


def head_lines(readout: Readout) -> Iterator[str]:
    """Yield what stands above the figures: how far they cover the runs, what counts when, and what is left out."""
    if readout.sites:
        yield f"Sites: {readable(', '.join(readout.sites))}."
    for site, error in readout.sites_failed.items():
        yield f"Not shown: the site {readable(site)}, which could not be read ({error}); the task's log says why."
    yield readout.coverage.in_words
    yield readout.dated_in_words
    if readout.where:
        yield f"Only: {readable(filters_text(readout.where))}. The line on the runs made is of all of them."
    if readout.without_run:
        yield f"Not included: ratings without a run, {readout.without_run:,}."
