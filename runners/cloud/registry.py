"""Checks the images of a pipeline in their registries, without pulling them.

The OCI distribution API: with the credentials of Google's default mechanism where the
registry is Google's, without any elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeline.config.config import Config
from runners.cloud.image import LABEL, image_of, images_of, repository_of
from sluice.errors import ConfigError, RemoteError

_TIMEOUT_S = 30
_REFERENCE = re.compile(
    r"(?P<host>localhost(?::\d+)?|[^/]+[.:][^/]+)/(?P<name>[^:@]+)"
    r"(?::(?P<tag>[\w.-]+))?(?:@(?P<digest>\w+:\w+))?"
)
_GOOGLE = re.compile(r"(.+\.)?gcr\.io|.+\.pkg\.dev")
_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    )
)


@dataclass(frozen=True)
class FoundImage:
    """An image in its registry.

    Attributes:
      digest: of its manifest.
      label: its label ``LABEL``; None if it has none.
    """

    digest: str
    label: str | None


def check_images(
    config: Config, on_warning: Callable[[str], None], session: Any = None
) -> dict[str, str]:
    """Checks that the images of a pipeline hold the code that is about to run.

    Where an image cannot be read from here, its tag must be that of the code.

    Args:
      config: a validated config with a ``cloud`` section.
      on_warning: receives a line per registry that does not answer.
      session: see ``find_image``.

    Returns:
      The digests of those that could be read, by their names.

    Raises:
      ConfigError: one was built from other code, or is not there.
    """
    current = [image_of(config.root, gpu=gpu) for gpu in (False, True)]
    digests = {}
    for image in images_of(config):
        repository = repository_of(image)
        names = [item.name(repository) for item in current]
        push = f"sluice image push --repository {repository}"
        hint = f"{push} --gpu" if image == names[1] else push
        try:
            found = find_image(image, session)
        except FileNotFoundError:
            text = "the registry has no such image"
            raise ConfigError(text, where=image, hint=hint) from None
        except RemoteError as error:
            on_warning(
                f"it is not known whether {image} holds the code about to run: "
                + error.what
            )
            continue
        if found is not None:
            digests[image] = found.digest
        label = found.label if found else None
        if label in [item.fingerprint for item in current]:
            continue
        if label is None and image in names:
            continue
        raise ConfigError(
            "the image does not hold the code that is about to run",
            where=image,
            expected=f"{names[0]}, or the label {LABEL} of it",
            actual=f"the label {label}"
            if label
            else f"no label {LABEL} that can be read",
            hint=hint,
        )
    return digests


def check_unchanged_images(digests: Mapping[str, str], hint: str) -> None:
    """Checks that images are those that a run began with.

    Args:
      digests: see ``check_images``.
      hint: the command to try.

    Raises:
      ConfigError: a name is that of another image now.
      RemoteError: a registry does not answer.
    """
    for image, digest in digests.items():
        try:
            found = find_image(image)
            now = found.digest if found else "the registry cannot be read from here"
        except FileNotFoundError:
            now = "no such image"
        if now != digest:
            raise ConfigError(
                "the image is not the one that the run began with",
                where=image,
                expected=digest,
                actual=now,
                hint=hint,
            )


def find_image(image: str, session: Any = None) -> FoundImage | None:
    """Returns an image of a registry.

    Args:
      image: its name, with a tag or digest.
      session: of ``requests``; None for one with the registry's credentials.

    Returns:
      None if the name has no registry, or if it may not be read from here: the service
      has credentials of its own.

    Raises:
      FileNotFoundError: the registry has no such image.
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
        read = partial(_get, session or _session_of(host))
        content = read(f"{address}/manifests/{reference}")
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        manifest = json.loads(content)
        for entry in manifest.get("manifests", ()):
            if entry.get("platform", {}).get("architecture") == "amd64":
                content = read(f"{address}/manifests/{entry['digest']}")
                manifest = json.loads(content)
                break
        config = json.loads(read(f"{address}/blobs/{manifest['config']['digest']}"))
        return FoundImage(digest, (config["config"].get("Labels") or {}).get(LABEL))
    except (PermissionError, google.auth.exceptions.DefaultCredentialsError):
        return None
    except (
        requests.RequestException,
        google.auth.exceptions.GoogleAuthError,
        ValueError,
        KeyError,
    ) as error:
        raise RemoteError(
            "the image's registry cannot be asked", where=image, actual=str(error)
        ) from error


def _get(session: Any, address: str) -> bytes:
    answer = session.get(address, headers={"Accept": _MANIFESTS}, timeout=_TIMEOUT_S)
    if answer.status_code in (401, 403):
        raise PermissionError(address)
    if answer.status_code == 404:
        raise FileNotFoundError(address)
    answer.raise_for_status()
    return answer.content


def _session_of(host: str) -> Any:
    import requests

    return _authorized_session() if _GOOGLE.fullmatch(host) else requests.Session()


def _authorized_session() -> Any:
    import google.auth
    from google.auth.transport.requests import AuthorizedSession

    credentials, _ = google.auth.default(
        scopes=["https://www.googleapis.com/auth/cloud-platform"]
    )
    return AuthorizedSession(credentials)
