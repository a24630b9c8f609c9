"""Metadata and the `sluice` console script; everything else is in pyproject.toml.

There is no `install_requires`: TFX 1.16's requirements, resolved today, include
packages published years later, and TFX breaks at import. The dependencies are the
hash-checked locks in requirements/.
"""

from __future__ import annotations

import runpy
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
PACKAGES = (
    "sluice",
    "runners",
    "reports",
    "pipeline",
    "components",
    "serving",
    "schemas",
    "sample_data",
)

setup(
    name="sluice",
    version=runpy.run_path(str(ROOT / "sluice" / "version.py"))["__version__"],
    description="TFX pipelines from TFRecords to a pushed model, with quality gates",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.10,<3.14",
    packages=find_packages(
        include=[*PACKAGES, *(f"{package}.*" for package in PACKAGES)]
    ),
    package_data={
        "schemas": ["**/*.pbtxt"],
        "pipeline": ["**/*.json"],
        "reports": ["templates/**"],
        "serving": ["server/static/*"],
        "runners": ["operations/*.txt", "ui/templates/*", "ui/static/*"],
    },
    entry_points={"console_scripts": ["sluice = runners.cli.main:main"]},
)
