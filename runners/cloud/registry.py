"""Reads an image's fingerprint label from its registry, without pulling it.

The OCI distribution API, with the credentials of Google's default mechanism: that of
the registries which Google's services pull from.
"""

from __future__ import annotations

import re
from typing import Any

from runners.cloud.image import LABEL
from sluice.errors import RemoteError

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
    """Returns an image's label ``LABEL``; None if it has none, or names no registry.

    Args:
      image: its name, with a tag or digest.
      session: of ``requests``; None for one with Google's default credentials.

    Raises:
      RemoteError: the registry has no such image, or refuses to tell.
    """
    found = _REFERENCE.fullmatch(image)
    if found is None:
        return None
    session = session or _authorized_session()
    host = found["host"]
    scheme = "http" if re.match(r"localhost|127\.", host) else "https"
    address = f"{scheme}://{host}/v2/{found['name']}"
    reference = found["digest"] or found["tag"] or "latest"
    manifest = _get(session, f"{address}/manifests/{reference}", image)
    if "manifests" in manifest:
        for entry in manifest["manifests"]:
            if entry.get("platform", {}).get("architecture") == "amd64":
                reference = entry["digest"]
        manifest = _get(session, f"{address}/manifests/{reference}", image)
    config = _get(session, f"{address}/blobs/{manifest['config']['digest']}", image)
    return (config["config"].get("Labels") or {}).get(LABEL)


def _get(session: Any, address: str, image: str) -> Any:
    import requests

    try:
        answer = session.get(
            address, headers={"Accept": _MANIFESTS}, timeout=_TIMEOUT_S
        )
        if answer.status_code == 404:
            raise RemoteError(
                "the registry has no such image",
                where=image,
                hint=f"sluice image push --repository {image.rpartition(':')[0]}",
            )
        if answer.status_code in (401, 403):
            raise RemoteError(
                "the registry does not let these credentials read the image",
                where=image,
                expected="the role Artifact Registry Reader",
                actual=f"{answer.status_code} {answer.reason}",
                hint="gcloud auth application-default login, or grant the role",
            )
        answer.raise_for_status()
        return answer.json()
    except (requests.RequestException, ValueError) as error:
        raise RemoteError(
            "the image's registry cannot be asked", where=image, actual=str(error)
        ) from error


def _authorized_session() -> Any:
    import google.auth
    from google.auth.transport.requests import AuthorizedSession

    credentials, _ = google.auth.default(
        scopes=["https://www.googleapis.com/auth/cloud-platform"]
    )
    return AuthorizedSession(credentials)
