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


SECRETS = """password passwd passphrase secret credentials api_key private_key
    access_token auth_token""".split()
SETTINGS = """tokens tokenizer tokenizer_path key keys compass passes bypass pwd
    secretary secret_name password_file credentials_path monkey hotkey""".split()


def _spellings(name: str) -> list[str]:
    """Returns a name as parameter, variable, flag and in camel case."""
    first, *rest = name.split("_")
    camel = first + "".join(word.title() for word in rest)
    return list(dict.fromkeys([name, name.upper(), name.replace("_", "-"), camel]))


@pytest.mark.parametrize(
    "name",
    [
        *(
            spelling
            for core in SECRETS
            for name in (core, f"db_{core}", f"my_{core}_old")
            for spelling in _spellings(name)
        ),
        *("PGPASSWORD", "MYSQL_PWD", "DB_PASS", "KAFKA_PASS", "db_pass", "HF_TOKEN"),
        *("TOKEN", "client.secret", "AWS_SECRET_ACCESS_KEY", "dbPwd"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            spelling
            for core in SETTINGS
            for name in (core, f"max_{core}" if core != "pwd" else core)
            for spelling in _spellings(name)
        ),
        *("MAX_TOKEN", "MAX_TOKENS", "max_token", "MODEL_MAX_TOKEN", "PAD_TOKEN"),
        *("pad_token", "eos_token", "OLDPWD", "FIRST_PASS", "num_pass", "k"),
    ],
)
def test_other_names(name: str) -> None:
    assert not is_secret_name(name)
