"""The image of a pipeline's nodes: its files, fingerprint and name.

An image holds the packages of Sluice and those at the top of the user's project, and
the locked environment. Its tag is the fingerprint of these, so code that has changed
needs an image with another name; a name with a tag of the user's own is taken as it is.
No data, no configs and no keys are in it; what a config names is uploaded to the
bucket.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path

from pipeline.config.config import Config
from pipeline.graph.custom_nodes import modules_of
from sluice import code_fingerprint
from sluice.errors import ConfigError, UsageError, bounded
from sluice.project import OWN_PACKAGES, own_root
from sluice.storage import digest
from sluice.workspace import installed_version

REPOSITORY = "sluice"
# Python and Debian by TFX version; see setup/environment.sh for the glibc.
_PLATFORMS = {"1.16": ("3.10", "bookworm"), "1.21": ("3.12", "trixie")}
TFX_VERSIONS = tuple(_PLATFORMS)
_NO_CODE = ("conftest.py", "setup.py", "tests")
_ARGUMENT = re.compile(r"^ARG (\w+)=.*$", re.MULTILINE)
_TAG = re.compile(r":[\w.-]+$")
# The folder of the user's packages, where the project is not Sluice's checkout.
_PROJECT = "project"


@dataclass(frozen=True)
class Image:
    """What an image is built from.

    Attributes:
      dockerfile: its text.
      files: the other files of the build's context, by their name in it.
      fingerprint: the digest of all these.
    """

    dockerfile: str
    files: Mapping[str, Path]
    fingerprint: str

    def name(self, repository: str = REPOSITORY) -> str:
        """Returns the image's name in a repository, with its tag."""
        return f"{repository}:{self.fingerprint[:16]}"

    def write_context(self, directory: Path) -> None:
        """Writes the files of the build into a directory."""
        for name, path in self.files.items():
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        (directory / "Dockerfile").write_text(self.dockerfile, encoding="utf-8")


@lru_cache
def image_of(root: Path, tfx: str | None = None, gpu: bool = False) -> Image:
    """Returns the image of a project, as this process has found it first.

    Args:
      root: the project root; its packages are in the image beside Sluice's.
      tfx: one of ``TFX_VERSIONS``; None for the installed one.
      gpu: whether CUDA is in it.

    Raises:
      UsageError: there is no Dockerfile, or no lock for this TFX.
    """
    tfx = tfx or ".".join((installed_version("tfx") or "").split(".")[:2])
    if tfx not in _PLATFORMS:
        versions = ", ".join(TFX_VERSIONS)
        raise UsageError(f"there is an image for TFX {versions}, but not for {tfx!r}")
    locks = ["uv", f"tfx-{tfx}", *([f"gpu-{tfx}"] if gpu else [])]
    fixed = ("LICENSE", *(f"requirements/{name}.txt" for name in locks))
    files = {name: own_root() / name for name in fixed}
    try:
        locked = files[f"requirements/tfx-{tfx}.txt"].read_text(encoding="utf-8")
        text = (own_root() / "Dockerfile").read_text(encoding="utf-8")
        ignored = (own_root() / ".dockerignore").read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UsageError(
            "an image is built from Sluice's checkout, which is not complete here",
            where=error.filename,
            hint="git clone, then make setup there",
        ) from error
    python, debian = _PLATFORMS[tfx]
    beam = re.search(r"^apache-beam==(\S+)", locked, re.MULTILINE)
    assert beam is not None
    arguments = {
        "BASE": f"python:{python}-slim-{debian}",
        "BEAM": f"apache/beam_python{python}_sdk:{beam[1]}",
        "TFX": tfx,
        "GPU": "yes" if gpu else "",
    }
    left_out = re.findall(r"^\*\*/(.+)$", ignored, re.MULTILINE)
    for name, path in _packages(root):
        files |= {
            f"{name}/{file.relative_to(path).as_posix()}"
            if path.is_dir()
            else name: file
            for file in _files(path, left_out)
        }
    text = _ARGUMENT.sub(lambda found: f"ARG {found[1]}={arguments[found[1]]}", text)
    content = {name: digest.of_file(path) for name, path in sorted(files.items())}
    fingerprint = digest.of_bytes(json.dumps([text, content]).encode())
    return Image(text, files, fingerprint)


def _packages(root: Path) -> Iterator[tuple[str, Path]]:
    """Yields the packages and modules of the image, by their name in it."""
    root, own = root.resolve(), own_root()
    for name in OWN_PACKAGES:
        yield name, own / name
    prefix = "" if root == own else f"{_PROJECT}/"
    for path in sorted(root.iterdir()):
        if path.name in (*_NO_CODE, *OWN_PACKAGES):
            continue
        if path.suffix == ".py" or (path / "__init__.py").is_file():
            yield f"{prefix}{path.name}", path


def _files(path: Path, left_out: list[str]) -> Iterator[Path]:
    for entry in sorted(path.iterdir()) if path.is_dir() else [path]:
        if any(fnmatch(entry.name, pattern) for pattern in left_out):
            continue
        if entry.is_dir():
            yield from _files(entry, left_out)
        else:
            yield entry


def with_tag(image: str, root: Path, gpu: bool = False) -> str:
    """Returns an image's name, with the tag of the current code if it has none."""
    if _TAG.sub("", image.partition("@")[0]) != image:
        return image
    return image_of(root, gpu=gpu).name(image)


def image_of_node(config: Config, node: str) -> str:
    """Returns the image of a node, with its tag."""
    assert config.cloud is not None
    given = config.cloud.of_node(node)
    image = given.image or config.cloud.image or REPOSITORY
    return with_tag(image, config.root, gpu=given.accelerator is not None)


def image_of_beam(config: Config) -> str:
    """Returns the image of Dataflow's workers, with its tag."""
    assert config.cloud is not None
    image = config.cloud.beam.image or config.cloud.image or REPOSITORY
    return with_tag(image, config.root)


def check_modules(config: Config) -> None:
    """Checks that the image would hold the modules of the nodes.

    Raises:
      ConfigError: it would not.
    """
    roots = list(dict.fromkeys([own_root(), config.root]))
    used = code_fingerprint.modules_of(modules_of(config), roots)
    held = {path.resolve() for path in image_of(config.root).files.values()}
    missing = [name for name, path in used.items() if path.resolve() not in held]
    if missing:
        package = missing[0].partition(".")[0]
        raise ConfigError(
            "the image would not hold modules of the nodes: "
            + ", ".join(bounded(missing)),
            hint=f"make {package} a package: {package}/__init__.py",
        )
