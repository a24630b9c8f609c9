"""URLs of notifications: those that apprise knows, without a secret in plain text."""

import pytest

from pipeline.checks.check_config import require_secrets
from sluice.errors import ConfigError

pytestmark = pytest.mark.unit

SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/"


@pytest.mark.parametrize("url", ["slak://a/b/c", "json", "https://example.org/hook"])
def test_a_url_that_apprise_does_not_know_is_refused(refused, url):
    said = refused(f"notify.urls=['json://localhost/', '{url}']")
    assert "apprise knows no service with such a URL" in said
    assert "notify.urls[1]" in said


@pytest.mark.parametrize("url", [SLACK, "json://me:password@localhost/"])
def test_a_secret_in_plain_text_is_refused(refused, url):
    said = refused(f"notify.urls=['{url}']")
    assert "the URL contains a secret" in said and "${env:NAME}" in said


@pytest.mark.parametrize(
    "url",
    ["me", "ftp://host/a", "https://me:password@host/a", "https://host/a?token=b"],
)
def test_a_heartbeat_is_a_plain_url_or_a_reference(validate, refused, url):
    assert "the heartbeat is no URL" in refused(f"notify.heartbeat={url}")
    assert validate("notify.heartbeat=https://host/a-1")
    assert validate("notify.heartbeat=${env:PING}")


def test_a_run_is_only_warned_of_a_variable_that_is_not_set(validate, monkeypatch):
    monkeypatch.delenv("UNSET", raising=False)
    valid = validate("notify.heartbeat=${env:UNSET}")
    (warning,) = [text for text in valid.warnings if "UNSET" in text]
    assert "UNSET is not set, so nothing is sent there" in warning
    require_secrets(valid.config)
    with pytest.raises(ConfigError, match="UNSET is not set"):
        require_secrets(valid.config, in_notify=True)
