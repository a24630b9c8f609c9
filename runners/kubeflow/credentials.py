"""Credentials for Kubeflow Pipelines, found as its own SDK finds them.

In this order: a projected token of a Kubernetes service account, Google's
Identity-Aware Proxy, Google's hosted installations. Otherwise none, as for a forwarded
port. Tokens are never stored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import google.auth
from google.auth.transport.requests import Request
from google.oauth2.id_token import fetch_id_token_credentials

TOKEN_FILE_VARIABLE = "KF_PIPELINES_SA_TOKEN_PATH"
IAP_VARIABLE = "KF_PIPELINES_IAP_OAUTH2_CLIENT_ID"

_TOKEN_FILE = "/var/run/secrets/kubeflow/pipelines/token"
_GOOGLE_HOST = re.compile(r"https?://\S+\.googleusercontent\.com/?")
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"

# Returns a token; a fresh one if it is called with True.
TokenSource = Callable[[bool], str]


def find_token_source(host: str) -> TokenSource | None:
    """Returns the source of tokens for a host; None where no credentials are found."""
    path = Path(os.environ.get(TOKEN_FILE_VARIABLE, _TOKEN_FILE))
    if path.is_file():
        # The kubelet replaces it before it expires.
        return lambda fresh: path.read_text().strip()
    if client_id := os.environ.get(IAP_VARIABLE):
        return _GoogleTokens(lambda: fetch_id_token_credentials(client_id))
    if _GOOGLE_HOST.fullmatch(host):
        return _GoogleTokens(lambda: google.auth.default(scopes=[_SCOPE])[0])
    return None


class _GoogleTokens:
    """Tokens of Google's credentials, which are looked up when the first is needed."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find
        self._credentials: Any = None

    def __call__(self, fresh: bool) -> str:
        if self._credentials is None:
            self._credentials = self._find()
        if fresh or not self._credentials.valid:
            self._credentials.refresh(Request())
        return str(self._credentials.token)
