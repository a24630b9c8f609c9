"""Recognizes credentials in values that a compiled pipeline would publish.

Everybody who may see a run sees its parameters and environment variables. Known
formats of credentials are certain; a value under a name such as ``password`` is not.
"""

from __future__ import annotations

import re

# Formats by their issuers' documentation; each has a prefix that nothing else has.
_FORMATS = {
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a Google API key": r"\bAIza[0-9A-Za-z_-]{35}\b",
    "a Google access token": r"\bya29\.[0-9A-Za-z_-]{20,}",
    "a Google OAuth client secret": r"\bGOCSPX-[0-9A-Za-z_-]{20,}",
    "a GitHub token": r"\b(?:gh[pousr]_[0-9A-Za-z]{36}|github_pat_\w{50,})",
    "a GitLab token": r"\bglpat-[0-9A-Za-z_-]{20,}",
    "an AWS access key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a Slack token": r"\bxox[abprs]-[0-9A-Za-z-]{10,}",
    "a Hugging Face token": r"\bhf_[0-9A-Za-z]{30,}",
    "a JSON web token": r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
    "a password in an address": r"\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]+:[^\s/@{]+@",
}
_NAME = re.compile(
    r"(?:^|[_.-])(?:[a-z]*(?:password|passwd|passphrase)|secrets?|credentials?"
    r"|(?:api|access|private|signing|encryption)[_-]?key"
    r"|(?:auth|access|api|bearer|refresh|session)[_-]?token"
    r"|(?:db|user|root|admin)[_-]?pass|(?<=[_.-])pwd)(?:$|[_.-])",
    re.IGNORECASE,
)
# Where a credential is, not what it is.
_REFERENCE = re.compile(r"[_.-](?:name|id|file|path|uri|version)$", re.IGNORECASE)
# Variables such as HF_TOKEN; not MAX_TOKEN and the like, which are settings of models.
_VARIABLE = re.compile(
    r"(?!(?:.*_)?(?:MAX|MIN|NUM|PAD|BOS|EOS|UNK|CLS|SEP|MASK|START|STOP|END|FIRST|LAST)"
    r"_(?:TOKEN|PASS)$)(?:.*_)?(?:TOKEN|PASS)"
)


def find_credential(text: str) -> str | None:
    """Returns what kind of credential a text holds; None for none."""
    for kind, pattern in _FORMATS.items():
        if re.search(pattern, text):
            return kind
    return None


def is_secret_name(name: str) -> bool:
    """Whether a key or variable is named as those of credentials are."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    if _REFERENCE.search(words):
        return False
    return bool(_VARIABLE.fullmatch(name) or _NAME.search(words))
