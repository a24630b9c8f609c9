"""Lints single values: references to images, paths, and what may be a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.config.origin import KeyPath
from runners.cloud.lint.finding import Finding, error, warning
from runners.cloud.lint.secret_text import find_credential, is_secret_name
from sluice.secrets import references
from sluice.storage.storage import is_remote

# https://pkg.go.dev/github.com/distribution/reference, but for the lengths.
_IMAGE = re.compile(
    r"(?P<name>(?:[\w.-]+(?::\d+)?/)?[\w.-]+(?:/[\w.-]+)*)"
    r"(?::(?P<tag>[\w.-]+))?(?P<digest>@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
# Folders of the image as of this machine.
_SYSTEM = ("/bin", "/dev", "/etc", "/gcs", "/opt", "/proc", "/sys", "/usr", "/var")
SECRET_FIX = (
    "keep it in Secret Manager, and let your code read it as the nodes' service account"
)


def lint_image(image: str, where: str) -> Iterator[Finding]:
    """Yields findings about an image that machines elsewhere are to pull.

    One of the config without a tag gets that of its code.
    """
    match = _IMAGE.fullmatch(image)
    if match is None:
        what = f"{image!r} is not a reference to an image"
        yield error(where, what, "write REGISTRY/PROJECT/REPOSITORY/NAME:TAG")
        return
    host, slash, _ = match["name"].partition("/")
    push = "push it to Artifact Registry: sluice image push --repository NAME"
    if host.startswith(("localhost", "127.")):
        yield error(where, f"the registry of {image} is on this machine", push)
    elif not slash or not ("." in host or ":" in host):
        what = f"{image} names no registry, so it is looked for at Docker Hub"
        yield warning(where, what, push)
    if match["digest"] is None and match["tag"] == "latest":
        what = f"{image} may be another image tomorrow"
        yield warning(where, what, "leave the tag out, or name the image by digest")


def lint_path(text: str, root: Path, where: str) -> Iterator[Finding]:
    """Yields a finding if a text is the path of a file or folder of this machine."""
    is_path = re.search(r"\w[./]|/\w", text) and len(text) < 1024 and text.isprintable()
    if not is_path or is_remote(text) or text.startswith(_SYSTEM):
        return
    if text.startswith("file://") or (root / Path(text).expanduser()).exists():
        yield error(
            where,
            f"{text} is on this machine",
            "write a gs:// address, or read a file of your package, which is in the "
            "image, by importlib.resources",
        )


def lint_secret(name: str, text: str, where: str) -> Iterator[Finding]:
    """Yields findings about a value that everybody who sees the run may read."""
    if kind := find_credential(text):
        yield error(where, f"this is {kind}, which the run would show", SECRET_FIX)
    elif text and is_secret_name(name) and not references(text):
        what = f"by its name, {name} is a secret, which the run would show"
        yield warning(where, what, SECRET_FIX)


def texts_of(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yields the strings of a value with their key paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts_of(item, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from texts_of(item, (*path, index))
