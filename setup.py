"""Metadata and the `sluice` console script; everything else is in pyproject.toml.

There is no `install_requires`: a free resolve of TFX 1.16 takes packages that came
years later and breaks. The hash-checked locks in requirements/ are the dependencies.
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
    description="From TFRecords to a served model, with gates that hold and explain",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.10,<3.14",
    packages=find_packages(
        include=[*PACKAGES, *(f"{package}.*" for package in PACKAGES)]
    ),
    package_data={"schemas": ["**/*.pbtxt"], "pipeline": ["**/*.json"]},
    entry_points={"console_scripts": ["sluice = runners.cli.main:main"]},
)
