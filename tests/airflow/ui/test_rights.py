"""Who sees the page, under both auth managers, with and without a path prefix."""

from __future__ import annotations

import pytest
from fastapi.routing import APIRoute

from airflow_provider_nrllm.ui.app import create_app
from tests.typo3.api_server import ApiServer

FOLDER = "2026-03-01T000000Z"
ROUTES = ["/nrllm/", "/nrllm/readout", "/nrllm/report"]


@pytest.fixture(scope="module", params=["simple", "fab"])
def manager(request):
    return request.param


@pytest.fixture(scope="module", params=["", "/team-a"], ids=["no prefix", "prefix"])
def server(request, manager, tmp_path_factory):
    running = ApiServer(tmp_path_factory.mktemp("airflow"), manager, request.param)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def readout_path(tmp_path_factory):
    directory = tmp_path_factory.mktemp("readouts")
    (directory / FOLDER).mkdir()
    (directory / FOLDER / "outcomes.html").write_text("<p>figures")
    return str(directory)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("role", "status"),
    [("anonymous", 401), (None, 403), ("viewer", 200), ("user", 200), ("op", 200), ("admin", 200)],
)
def test_who_may_see_assets_sees_the_page(server, readout_path, route, role, status):
    assert status == server.ask(f"{route}?of={FOLDER}", role, readout_path=readout_path).status


def test_the_refused_are_told_nothing_but_that(server, readout_path):
    for role, words in [("anonymous", "You are not logged in"), (None, "You may not see this page")]:
        body = server.ask("/nrllm/", role, readout_path=readout_path).body
        assert words in body
        assert FOLDER not in body


def test_who_opens_the_page_directly_is_led_to_the_login_and_back(server):
    answer = server.ask("/nrllm/readout?site=a%26b", "anonymous", headers={"sec-fetch-dest": "document"})
    here = f"{server.prefix}/nrllm/readout%3Fsite%3Da%2526b"
    assert (302, f"{server.prefix}/api/v2/auth/login?next={here}") == (answer.status, answer.headers["location"])


@pytest.mark.parametrize("path", ["docs", "redoc", "openapi.json", "docs/oauth2-redirect", "static/x", "readout/"])
@pytest.mark.parametrize("role", ["anonymous", "admin"])
def test_nothing_else_is_there(server, path, role):
    assert 404 == server.ask(f"/nrllm/{path}", role).status


def test_every_route_of_the_app_is_closed_by_the_apps_own_dependency():
    assert [APIRoute] * len(ROUTES) == [type(route) for route in create_app().routes]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_the_page_can_only_be_read(server, method):
    assert 405 == server.ask("/nrllm/", "admin", method=method).status
