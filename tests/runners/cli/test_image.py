"""``sluice image`` as it is typed."""

from __future__ import annotations

import json

import pytest

from runners.cloud.image import image_of
from sluice.project import own_root

pytestmark = pytest.mark.unit

OPTIONS = ("--repository", "eu/me", "--tfx", "1.21", "--gpu")


def test_name_and_files(tmp_path, sluice, monkeypatch):
    monkeypatch.chdir(own_root())
    found, folder = image_of(own_root(), "1.21", gpu=True), tmp_path / "c"
    code, out, _ = sluice("image", "--write", str(folder), *OPTIONS)
    assert (code, out) == (0, f"{found.name('eu/me')}\n")
    assert (folder / "Dockerfile").read_text() == found.dockerfile
    assert (folder / "sluice").is_dir()
    code, _, err = sluice("image", "--write", str(folder), *OPTIONS)
    assert code == 2 and "the directory exists" in err
    assert json.loads(sluice("image", *OPTIONS, "--json")[1]) == {
        "schema_version": 1,
        "name": found.name("eu/me"),
        "fingerprint": found.fingerprint,
    }
