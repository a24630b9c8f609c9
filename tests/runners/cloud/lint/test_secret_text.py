"""Recognition of credentials by format and by name."""

from __future__ import annotations

import pytest

from runners.cloud.lint.secret_text import find_credential, is_secret_name

pytestmark = pytest.mark.unit

X = "0123456789abcdefghijABCDEFGHIJ0123456789"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----\n", "a private key"),
        (f'{{"key": "AIza{X[:35]}"}}', "a Google API key"),
        (f"ya29.{X}", "a Google access token"),
        (f"GOCSPX-{X}", "a Google OAuth client secret"),
        (f"token ghp_{X[:36]}", "a GitHub token"),
        (f"glpat-{X}", "a GitLab token"),
        ("AKIA0123456789ABCDEF", "an AWS access key"),
        ("xoxb-0123456789-abc", "a Slack token"),
        (f"hf_{X}", "a Hugging Face token"),
        (f"eyJ{X}.eyJ{X}.{X}", "a JSON web token"),
        ("postgres://me:hunter2@db/x", "a password in an address"),
    ],
)
def test_formats(text: str, kind: str) -> None:
    assert find_credential(text) == kind


@pytest.mark.parametrize(
    "text", ["gs://bucket/a", "https://host:443/x", X, "${env:KEY}", "ghp_short"]
)
def test_other_texts(text: str) -> None:
    assert find_credential(text) is None


@pytest.mark.parametrize(
    "name", ["password", "DB_PASSWORD", "apiKey", "HF_TOKEN", "client.secret"]
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["pad_token", "tokenizer", "keys", "secretary", "k"])
def test_other_names(name: str) -> None:
    assert not is_secret_name(name)
