"""
The page of readouts: the sites, the newest report of each as it was written, and the earlier ones.

Needs Airflow 3.1, whose api-server mounts it. Only reads files, and only for users who may see assets.
"""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import quote

# An app that is mounted inherits no check of rights. Where this cannot be imported, there is no app.
from airflow.api_fastapi.core_api.security import requires_access_asset
from airflow.configuration import conf
from fastapi import Depends, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException

from airflow_provider_nrllm.readout.folders import end_of
from airflow_provider_nrllm.ui.readouts import NoReadoutError, Readouts, StorageError, UnfitReportError

log = logging.getLogger(__name__)

_CLOSED = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

# Our own page stays of Airflow's origin, or its links would be sent without the session's cookie; scripts run in none.
_PAGE_POLICY = f"sandbox allow-same-origin allow-downloads; frame-src 'self'; {_CLOSED}"

# A report is what somebody wrote into a storage: it gets an origin of its own.
_REPORT_POLICY = f"sandbox allow-downloads; img-src data:; {_CLOSED}"

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
}

_REFUSALS = {
    401: "You are not logged in, or your session is over. Reload the page to log in.",
    403: "You may not see this page. It is for users who may see assets: ask for the right to read them.",
    404: "There is no such page.",
    405: "This page can only be read.",
}

_SEE_LOG = "The api-server's log has the reason."

_templates = Environment(
    loader=PackageLoader("airflow_provider_nrllm.ui", ""), autoescape=True, undefined=StrictUndefined
)
_templates.filters["moment"] = lambda folder: f"{end_of(folder):%Y-%m-%d %H:%M} UTC"


def create_app() -> FastAPI:
    """Return the app. All of its routes are closed but to users who may see assets, those added later too."""
    app = FastAPI(
        title="nr_llm outcomes",
        # These three would be open.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        dependencies=[Depends(requires_access_asset("GET"))],
    )
    app.add_api_route("/", show_sites, methods=["GET", "HEAD"], response_class=HTMLResponse)
    app.add_api_route("/readout", show_readout, methods=["GET", "HEAD"], response_class=HTMLResponse)
    app.add_api_route("/report", show_report, methods=["GET", "HEAD"], response_class=HTMLResponse)
    for kind in (HTTPException, NoReadoutError, UnfitReportError, StorageError, Exception):
        app.add_exception_handler(kind, _answer)
    return app


def show_sites() -> Response:
    """Show the sites, or where there is but one its newest readout."""
    if (readouts := _readouts()) is None:
        return _say(
            404,
            "Airflow is not told where the readouts are.",
            "Set readout_path in the section [nrllm] of its configuration (AIRFLOW__NRLLM__READOUT_PATH) to a "
            "directory or URL that the api-server can read, and restart the api-server.",
            "Have a NrLlmOutcomeReadoutOperator write into a folder of it, one for each site, with "
            "output_path and dated_folders=True.",
        )
    sites = readouts.sites()
    if len(sites) == 1:
        ((site, folders),) = sites.items()
        return _readout_page(readouts, site, folders, folders[0], alone=True)
    if not sites:
        raise NoReadoutError
    return _page("sites.html.jinja", sites=sites, unnamed=readouts.name)


def show_readout(site: str = Readouts.UNNAMED, of: str = "") -> Response:
    """
    Show a readout in a frame, with links to the earlier ones of its site.

    :param of: its dated folder; the newest without
    """
    readouts = _configured()
    folders = readouts.of(site)
    if of and of not in folders:
        raise NoReadoutError
    return _readout_page(readouts, site, folders, of or folders[0], alone=False)


def show_report(site: str = Readouts.UNNAMED, of: str = "") -> Response:
    """
    Show the report of a readout, as it was written.

    :param of: its dated folder; the newest without
    """
    readouts = _configured()
    return _html(200, readouts.report(site, of or readouts.of(site)[0]), _REPORT_POLICY)


def _readouts() -> Readouts | None:
    directory = conf.get("nrllm", "readout_path", fallback="").strip()
    return Readouts(directory) if directory else None


def _configured() -> Readouts:
    if (readouts := _readouts()) is None:
        raise NoReadoutError
    return readouts


def _readout_page(readouts: Readouts, site: str, folders: list[str], of: str, *, alone: bool) -> Response:
    name = site or readouts.name
    return _page("readout.html.jinja", site=site, name=name, folders=folders, shown=of, alone=alone)


def _answer(request: Request, error: Exception) -> Response:
    """Answer in sentences what could not be shown; nothing of the error itself but its kind."""
    match error:
        case NoReadoutError():
            return _say(
                404,
                "There is no such readout.",
                "None was written yet, or it was removed: a NrLlmOutcomeReadoutOperator writes one, with output_path "
                "and dated_folders=True.",
            )
        case UnfitReportError():
            return _say(502, str(error), "It is not shown here; open the file where the readout operator wrote it.")
        case StorageError():
            log.warning("The readouts cannot be read.", exc_info=error)
            return _say(503, f"The storage of the readouts cannot be read ({error}).", _SEE_LOG)
        case HTTPException(status_code=401) if _is_opened_directly(request):
            here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            login = f"{request.scope.get('app_root_path', '')}/api/v2/auth/login?next={quote(here, safe='/')}"
            return RedirectResponse(login, 302, _headers(_PAGE_POLICY))
        case HTTPException():
            return _say(error.status_code, _REFUSALS.get(error.status_code, "The page cannot be shown."))
        case _:
            return _say(500, "The page cannot be shown.", _SEE_LOG)


def _is_opened_directly(request: Request) -> bool:
    """Return whether a browser opens the page by itself: in a frame, a login would be a page within the page."""
    return request.method == "GET" and request.headers.get("sec-fetch-dest") == "document"


def _say(status: int, *sentences: str) -> Response:
    return _page("sentences.html.jinja", status, sentences=sentences)


def _page(template: str, status: int = 200, **values: Any) -> Response:
    return _html(status, _templates.get_template(template).render(values), _PAGE_POLICY)


def _html(status: int, content: str | bytes, policy: str) -> Response:
    return HTMLResponse(content, status, _headers(policy))


def _headers(policy: str) -> dict[str, str]:
    return {**_HEADERS, "Content-Security-Policy": policy}
