"""The table of regions and accelerators against the client library's."""

from __future__ import annotations

import re
from importlib import metadata

import pytest

from runners.cloud.lint.machine_types import GPUS, REGIONS, gpu_regions

pytestmark = pytest.mark.unit


def _source(name: str) -> str:
    """Returns a file of the client library, whose import would take seconds."""
    files = metadata.files("google-cloud-aiplatform") or []
    path = next(file for file in files if str(file) == f"google/cloud/{name}")
    return path.read_text()


def test_every_region_of_the_client_is_known() -> None:
    text = _source("aiplatform/constants/base.py")
    block = text.partition("SUPPORTED_REGIONS")[2].partition("}")[0]
    assert set(re.findall(r'"([a-z0-9-]+)"', block)) - {"global"} <= REGIONS


def test_every_gpu_of_the_client_is_known() -> None:
    text = _source("aiplatform_v1/types/accelerator_type.py")
    named = set(re.findall(r"^    (NVIDIA_\w+) = ", text, re.MULTILINE))
    assert named - {"NVIDIA_TESLA_K80"} <= GPUS


@pytest.mark.parametrize("gpu", sorted(GPUS))
def test_gpus_are_in_known_regions(gpu: str) -> None:
    assert gpu_regions(gpu) <= REGIONS
