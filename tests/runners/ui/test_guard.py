"""Requests of other sites, other users and other names are refused."""

import pytest

from tests.kit.runs import WrittenRuns

pytestmark = pytest.mark.unit

RUN = "/pipelines/digits/runs/20260101T000000Z-aaaa/"


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """The folder of a failed run of digits; the current directory is its project."""
    root = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.delenv("SLUICE_WORKSPACE", raising=False)
        yield WrittenRuns(root).fail()


@pytest.fixture
def client(run_dir, call_ui):
    return call_ui()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 400),
        ({"Host": "127.0.0.1.evil.example:80"}, 400),
        ({"Host": ""}, 400),
        ({"Cookie": ""}, 401),
        ({"Cookie": "sluice_ui=wrong"}, 401),
        ({"Cookie": "sluice_ui=é".encode()}, 401),
    ],
)
def test_nothing_can_be_read(client, headers, status):
    client.cookies.clear()
    for path in ("/", "/static/ui.js", "/nowhere", RUN):
        answer = client.get(path, headers={"Cookie": "sluice_ui=secret", **headers})
        assert answer.status_code == status
        assert "digits" not in answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(client, method):
    for path in ("/", "/pipelines/digits", RUN):
        assert client.request(method, path).status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        "/pipelines/..%2f..%2f..%2fetc",
        "/pipelines/digits/runs/%2e%2e/",
        f"{RUN}logs/..%2F..%2Frun.json",
        "/pipelines/digits/diff.html?before=/etc&after=x",
        "/pipelines/%00",
    ],
)
def test_only_what_exists_can_be_named(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert "schema_version" not in answer.text and "Traceback" not in answer.text


def test_the_printed_address_opens_a_session(client):
    client.cookies.clear()
    assert client.get("/?token=wrong").status_code == 401
    answer = client.get("/?token=secret")
    assert "digits" in answer.text
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("sluice_ui=secret;")
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert client.get("/pipelines/digits").status_code == 200
    assert "set-cookie" not in client.get("/").headers


def test_headers(client):
    for path, cookies in (("/", True), ("/nowhere", True), ("/", False)):
        client.cookies = client.cookies if cookies else {}
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["referrer-policy"] == "origin"
        assert headers["cache-control"] == "no-store"


def test_a_report_is_in_a_sandbox(client, run_dir):
    (run_dir / "report.html").write_text("<script>steal()</script>")
    answer = client.get(f"{RUN}page.html")
    policy = answer.headers["content-security-policy"]
    # Only a page of this server shows it in a frame.
    assert policy == (
        "sandbox allow-scripts allow-top-navigation-by-user-activation; "
        "frame-ancestors 'self'"
    )
    assert answer.text == "<script>steal()</script>"
    answer = client.get(f"{RUN}report.html")
    assert f'<iframe class="report" src="{RUN}page.html?failed"' in answer.text
    policy = answer.headers["content-security-policy"]
    assert "frame-src 'self'" in policy and "frame-ancestors 'none'" in policy
