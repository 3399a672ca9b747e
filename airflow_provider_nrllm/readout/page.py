"""A readout as one self-contained HTML page. Needs Jinja and Matplotlib, which the extra ``readout`` brings."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from airflow_provider_nrllm.readout.counts import Readout
from airflow_provider_nrllm.readout.exports import NO_RECOMMENDATION
from airflow_provider_nrllm.readout.pictures import PICTURE_GROUPS, pictures_of
from airflow_provider_nrllm.readout.tables import by_words, tables_of


def as_html(readout: Readout) -> str:
    """
    Return the readout as a page with all tables and pictures.

    Nothing in it is loaded from elsewhere, no script runs, and all text is escaped: only the SVG of
    :mod:`airflow_provider_nrllm.readout.pictures`, which escapes its own, is taken as it is.
    """
    environment = Environment(
        loader=PackageLoader("airflow_provider_nrllm.readout", ""),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html.jinja").render(
        by=by_words(readout.grouping),
        range=readout.in_words,
        without_run=readout.without_run,
        note=NO_RECOMMENDATION,
        tables=list(tables_of(readout, readout.groups)),
        pictures=pictures_of(readout),
        picture_groups=PICTURE_GROUPS,
        left_out=len(readout.groups) > PICTURE_GROUPS,
    )
