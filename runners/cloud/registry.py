"""Reads an image's fingerprint label from its registry, without pulling it.

The OCI distribution API, with the credentials of Google's default mechanism: that of
the registries which Google's services pull from.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from runners.cloud.image import LABEL
from sluice.errors import ConfigError, RemoteError

_TIMEOUT_S = 30
_REFERENCE = re.compile(
    r"(?P<host>localhost(?::\d+)?|[^/]+[.:][^/]+)/(?P<name>[^:@]+)"
    r"(?::(?P<tag>[\w.-]+))?(?:@(?P<digest>\w+:\w+))?"
)
_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    )
)


def fingerprint_label(image: str, session: Any = None) -> str | None:
    """Returns an image's label ``LABEL``.

    Args:
      image: its name, with a tag or digest.
      session: of ``requests``; None for one with Google's default credentials.

    Returns:
      None if it has none, names no registry, or may not be read from here: the service
      has credentials of its own.

    Raises:
      ConfigError: the registry has no such image.
      RemoteError: it does not answer, or not as a registry.
    """
    import google.auth.exceptions
    import requests

    found = _REFERENCE.fullmatch(image)
    if found is None:
        return None
    host = found["host"]
    scheme = "http" if re.match(r"localhost|127\.", host) else "https"
    address = f"{scheme}://{host}/v2/{found['name']}"
    reference = found["digest"] or found["tag"] or "latest"
    try:
        read = partial(_get, session or _authorized_session())
        manifest = read(f"{address}/manifests/{reference}")
        for entry in manifest.get("manifests", ()):
            if entry.get("platform", {}).get("architecture") == "amd64":
                manifest = read(f"{address}/manifests/{entry['digest']}")
                break
        config = read(f"{address}/blobs/{manifest['config']['digest']}")["config"]
    except (PermissionError, google.auth.exceptions.DefaultCredentialsError):
        return None
    except FileNotFoundError:
        raise ConfigError(
            "the registry has no such image",
            where=image,
            hint=f"sluice image push --repository {host}/{found['name']}",
        ) from None
    except (
        requests.RequestException,
        google.auth.exceptions.GoogleAuthError,
        ValueError,
        KeyError,
    ) as error:
        raise RemoteError(
            "the image's registry cannot be asked", where=image, actual=str(error)
        ) from error
    return (config.get("Labels") or {}).get(LABEL)


def _get(session: Any, address: str) -> Any:
    answer = session.get(address, headers={"Accept": _MANIFESTS}, timeout=_TIMEOUT_S)
    if answer.status_code in (401, 403):
        raise PermissionError(address)
    if answer.status_code == 404:
        raise FileNotFoundError(address)
    answer.raise_for_status()
    return answer.json()


def _authorized_session() -> Any:
    import google.auth
    from google.auth.transport.requests import AuthorizedSession

    credentials, _ = google.auth.default(
        scopes=["https://www.googleapis.com/auth/cloud-platform"]
    )
    return AuthorizedSession(credentials)
