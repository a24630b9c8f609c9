"""Requests of other sites, other users and other names are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.unit

PATHS = ("/", "/pipelines/digits", "/static/page.css", "/static/ui.js", "/nowhere")
RESUME = "/pipelines/digits/runs/20260101T000000Z-aaaa/do/resume"
NAVIGATION = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Site": "cross-site"}


@pytest.fixture(scope="module")
def client(failed_run: Path, serve_ui: Callable[..., Any]) -> Any:
    return serve_ui()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("headers", "status", "text"),
    [
        ({"Host": "evil.example"}, 421, "unknown host"),
        ({"Host": "127.0.0.1.evil.example:80"}, 421, "unknown host"),
        ({"Host": "localhost@evil.example"}, 421, "unknown host"),
        ({"Host": "127.0.0.1:80@evil.example"}, 421, "unknown host"),
        ({"Host": ""}, 421, "unknown host"),
        ({"Cookie": None}, 401, "open the address that `sluice ui` has printed"),
        ({"Cookie": "sluice_ui=wrong"}, 401, "open the address"),
        ({"Cookie": "sluice_ui="}, 401, "open the address"),
        ({"Cookie": "sluice_ui=é"}, 401, "open the address"),
        ({"Sec_Fetch_Site": "cross-site"}, 403, "another site"),
        # Another port of this host may be the server of another user.
        ({"Sec_Fetch_Site": "same-site"}, 403, "another site"),
        ({"Origin": "http://127.0.0.1:1"}, 403, "another site"),
        ({"Origin": "null"}, 403, "another site"),
    ],
)
def test_hostile_reading(
    client: Any, path: str, headers: dict[str, str | None], status: int, text: str
) -> None:
    answer = client.get(path, **headers)
    assert answer.status == status
    assert text in answer.text
    assert "digits" not in answer.text


@pytest.mark.parametrize(
    ("fields", "headers", "text"),
    [
        ({}, {"Origin": None}, "another site"),
        ({}, {"Origin": "null"}, "another site"),
        ({}, {"Origin": "http://evil.example"}, "another site"),
        ({}, {"Origin": "http://127.0.0.1:1"}, "another site"),
        ({}, {"Sec_Fetch_Site": "same-site"}, "another site"),
        ({}, {"Sec_Fetch_Site": "cross-site", **NAVIGATION}, "another site"),
        ({"form_token": ""}, {}, "an earlier start"),
        ({"form_token": "wrong"}, {}, "an earlier start"),
    ],
)
def test_hostile_forms(
    client: Any, fields: dict[str, str], headers: dict[str, str | None], text: str
) -> None:
    answer = client.post(RESUME, fields, **headers)
    assert (answer.status, text in answer.text) == (403, True)
    assert client.children.all() == []


def test_a_form_without_session_or_too_large(client: Any) -> None:
    assert client.post(RESUME, Cookie=None).status == 401
    assert client.post(RESUME, {"reason": "x" * 200_000}).status == 413
    assert client.post(RESUME, {"reason": "\0"}).status == 400
    assert client.children.all() == []


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"])
def test_other_methods(client: Any, method: str) -> None:
    assert client.send(method, RESUME).status == 403
    assert client.send(method, RESUME, Origin=client.origin).status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/pipelines/..%2f..%2f..%2fetc",
        "/pipelines/..",
        "/pipelines/digits/runs/../",
        "/pipelines/digits/runs/%2e%2e/",
        "/pipelines/digits/runs/..%2F..%2Fserving",
        "/pipelines/digits/runs/20260101/",
        "/pipelines/digits/runs/20260101T000000Z-aaaa/logs/..%2F..%2Frun.json",
        "/pipelines/digits/runs/20260101T000000Z-aaaa/logs/..",
        "/pipelines/digits/runs/20260101T000000Z-aaaa/logs/Trainer%00",
        "/pipelines/digits/runs/20260101T000000Z-aaaa/do/..",
        "/static/..%2fguard.py",
        "/static/guard.py",
        "/commands/1",
        f"/commands/{'9' * 400}",
        f"/pipelines/{'x' * 10_000}",
        f"/pipelines/digits/runs/{'9' * 30_000}/",
        "/pipelines/%00",
        "/pipelines/%ff",
        "//evil.example/",
    ],
    ids=lambda path: path[:60],
)
def test_only_what_exists_can_be_named(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status in (404, 409)
    assert "schema_version" not in answer.text and "Traceback" not in answer.text


def test_the_printed_token_opens_a_session(client: Any) -> None:
    assert client.get("/login", Cookie=None).status == 401
    assert client.get("/login?token=wrong", Cookie=None).status == 401
    answer = client.get(f"/login?token={client.session.token}", Cookie=None)
    assert answer.status == 200
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"sluice_ui={client.session.token};")
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert f'content="0; url={client.origin}/"' in answer.text


def test_a_ticket_opens_one_session(client: Any) -> None:
    """The browser's command line has it."""
    path = f"/login?token={client.session.ticket}"
    assert client.get(path, Cookie=None).status == 200
    assert client.get(path, Cookie=None).status == 401


def test_a_link_of_another_site_may_open_a_page(client: Any) -> None:
    """The browser sends no cookie then, but it does from the page that it gets."""
    assert "digits" in client.get("/", **NAVIGATION).text
    path = "/pipelines/%22%3E%3Cb%3E?log=%22%3E&x=1"
    answer = client.get(path, Cookie=None, **NAVIGATION)
    url = f"{client.origin}{path}".replace("&", "&amp;")
    assert f'content="0; url={url}"' in answer.text and "<b>" not in answer.text
    again = {**NAVIGATION, "Sec_Fetch_Site": "same-origin"}
    assert client.get(path, Cookie=None, **again).status == 401
    answer = client.get("//evil.example/", Cookie=None, **NAVIGATION)
    assert f"url={client.origin}//evil.example/" in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9", "localhost"])
def test_other_ports_of_a_tunnel_are_allowed(client: Any, host: str) -> None:
    assert client.get("/", Host=host).status == 200


def test_an_icon_is_no_error(client: Any) -> None:
    assert client.get("/favicon.ico", Cookie=None).status == 204


def test_headers(client: Any) -> None:
    for path in ("/", "/nowhere", "/static/ui.js", "/login"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"


def test_a_report_is_in_a_sandbox(client: Any, failed_run: Path) -> None:
    (failed_run / "report.html").write_text("<script>steal()</script>")
    answer = client.get(RESUME.replace("do/resume", "report.html"))
    policy = answer.headers["content-security-policy"]
    assert policy == "sandbox allow-scripts; frame-ancestors 'none'"
    assert answer.text == "<script>steal()</script>"


def test_read_only_has_no_buttons_and_takes_no_forms(
    client: Any, serve_ui: Callable[..., Any]
) -> None:
    run = RESUME.removesuffix("do/resume")
    assert "/do/resume" in client.get(run).text
    client = serve_ui(read_only=True)
    answer = client.get(run)
    assert answer.status == 200
    assert "/do/" not in answer.text and "read-only" in answer.text
    assert client.get(RESUME).status == 404
    assert client.post(RESUME).status == 404
