"""Dated table of Vertex AI's regions, machine types and accelerators.

As of ``AS_OF``, from these sources; nothing was tried on the service:

- regions and accelerators: ``SUPPORTED_REGIONS`` and ``AcceleratorType`` of
  google-cloud-aiplatform 1.79, and the REST reference of MachineSpec for newer ones;
- machine types: Vertex AI documentation, "Configure compute resources for custom
  training"; GPUs of a machine: Compute Engine documentation, "GPU machine types" and
  "Accelerator-optimized machine family";
- limits of a step: "Specify the machine configuration for a pipeline step";
- regions of GPUs: Compute Engine's offers in SkyPilot's catalog (v8); of T4, V100, P100
  and P4 none are known;
- TPUs: Cloud TPU documentation, "TPU configurations" and "TPU regions and zones".

Google adds machines every few months, so a name that is not here is a warning. That a
machine of the table cannot carry an accelerator is an error.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

AS_OF = "August 2026"

REGIONS = frozenset(
    """africa-south1 asia-east1 asia-east2 asia-northeast1 asia-northeast2
    asia-northeast3 asia-south1 asia-south2 asia-southeast1 asia-southeast2
    australia-southeast1 australia-southeast2 europe-central2 europe-north1
    europe-north2 europe-southwest1 europe-west1 europe-west2 europe-west3 europe-west4
    europe-west6 europe-west8 europe-west9 europe-west12 me-central1 me-central2
    me-west1 northamerica-northeast1 northamerica-northeast2 southamerica-east1
    southamerica-west1 us-central1 us-east1 us-east4 us-east5 us-east7 us-south1
    us-west1 us-west2 us-west3 us-west4 us-west8""".split()
)

# What the service can give to one step.
MAX_CPU, MAX_MEMORY_GB = 96, 624

_CPU_FAMILIES = {
    "c2-standard": {4, 8, 16, 30, 60},
    "e2-highcpu": {2, 4, 8, 16, 32},
    "e2-highmem": {2, 4, 8, 16},
    "e2-standard": {2, 4, 8, 16, 32},
    "m1-megamem": {96},
    "m1-ultramem": {40, 80, 160},
    "n1-highcpu": {2, 4, 8, 16, 32, 64, 96},
    "n1-highmem": {2, 4, 8, 16, 32, 64, 96},
    "n1-standard": {2, 4, 8, 16, 32, 64, 96},
    "n2-highcpu": {2, 4, 8, 16, 32, 48, 64, 80},
    "n2-highmem": {2, 4, 8, 16, 32, 48, 64, 80},
    "n2-standard": {2, 4, 8, 16, 32, 48, 64, 80},
}
# The GPUs that are part of a machine, which must be named with it.
_BUILT_IN = {
    **{f"a2-highgpu-{n}g": ("NVIDIA_TESLA_A100", n) for n in (1, 2, 4, 8)},
    "a2-megagpu-16g": ("NVIDIA_TESLA_A100", 16),
    **{f"a2-ultragpu-{n}g": ("NVIDIA_A100_80GB", n) for n in (1, 2, 4, 8)},
    **{f"a3-highgpu-{n}g": ("NVIDIA_H100_80GB", n) for n in (1, 2, 4, 8)},
    "a3-edgegpu-8g": ("NVIDIA_H100_80GB", 8),
    "a3-megagpu-8g": ("NVIDIA_H100_MEGA_80GB", 8),
    "a3-ultragpu-8g": ("NVIDIA_H200_141GB", 8),
    "a4-highgpu-8g": ("NVIDIA_B200", 8),
    "a4x-highgpu-4g": ("NVIDIA_GB200", 4),
    **{f"g2-standard-{n}": ("NVIDIA_L4", 1) for n in (4, 8, 12, 16, 32)},
    "g2-standard-24": ("NVIDIA_L4", 2),
    "g2-standard-48": ("NVIDIA_L4", 4),
    "g2-standard-96": ("NVIDIA_L4", 8),
    **{f"g4-standard-{48 * n}": ("NVIDIA_RTX_PRO_6000", n) for n in (1, 2, 4, 8)},
}
# The GPUs that can be attached to an N1 machine: by their number, its most vCPUs.
_ATTACHED_TO_N1 = {
    "NVIDIA_TESLA_P4": {1: 24, 2: 48, 4: 96},
    "NVIDIA_TESLA_P100": {1: 16, 2: 32, 4: 96},
    "NVIDIA_TESLA_T4": {1: 48, 2: 48, 4: 96},
    "NVIDIA_TESLA_V100": {1: 12, 2: 24, 4: 48, 8: 96},
}
_ENDED = {"NVIDIA_TESLA_K80"}
_GPU_REGIONS = {
    "NVIDIA_TESLA_A100": """asia-northeast1 asia-northeast3 asia-southeast1 europe-west4
        me-west1 us-central1 us-east1 us-west1 us-west3 us-west4""",
    "NVIDIA_A100_80GB": "asia-southeast1 europe-west4 us-central1 us-east4 us-east5",
    "NVIDIA_B200": """asia-northeast1 asia-southeast1 europe-north1 europe-west4
        us-central1 us-east1 us-east4 us-south1 us-west2 us-west3""",
    "NVIDIA_H100_80GB": """asia-east1 asia-northeast1 asia-northeast3 asia-south1
        asia-south2 asia-southeast1 australia-southeast1 europe-north1 europe-west1
        europe-west2 europe-west3 europe-west4 europe-west8 europe-west9
        northamerica-northeast2 us-central1 us-east4 us-east5 us-west1 us-west4""",
    "NVIDIA_H200_141GB": """asia-south1 asia-south2 europe-west1 europe-west4
        us-central1 us-east4 us-east5 us-south1 us-west1""",
    "NVIDIA_L4": """asia-east1 asia-northeast1 asia-northeast3 asia-south1
        asia-southeast1 europe-west1 europe-west2 europe-west3 europe-west4 europe-west6
        me-central2 northamerica-northeast1 northamerica-northeast2 us-central1 us-east1
        us-east4 us-west1 us-west4""",
}


@dataclass(frozen=True)
class _TpuFamily:
    """TPU machines of a generation: their sizes in chips, slices and regions."""

    sizes: tuple[int, ...]
    topologies: frozenset[str]
    regions: frozenset[str]


_2D = "1x1 2x2 2x4 4x4 4x8 8x8 8x16 16x16".split()
_3D = "2x2x1 2x2x2 2x2x4 2x4x4 4x4x4 4x4x8 4x8x8 8x8x8".split()
_TPUS = {
    "ct5lp-hightpu": _TpuFamily(
        (1, 4, 8),
        frozenset(_2D),
        frozenset("us-central1 us-south1 us-west1 us-west4 europe-west4".split()),
    ),
    "ct5p-hightpu": _TpuFamily(
        (4,),
        frozenset(_3D),
        frozenset("us-central1 us-east5 europe-west4".split()),
    ),
    "ct6e-standard": _TpuFamily(
        (1, 4, 8),
        frozenset(_2D),
        frozenset("us-central1 us-east1 us-east5 europe-west4".split()),
    ),
}
GPUS = frozenset({*_ATTACHED_TO_N1, *(gpu for gpu, _ in _BUILT_IN.values())})


def is_known(machine_type: str) -> bool:
    """Whether the table has a machine type."""
    family, _, size = machine_type.rpartition("-")
    return (
        machine_type in _BUILT_IN
        or (size.isdecimal() and int(size) in _CPU_FAMILIES.get(family, ()))
        or _tpu(machine_type) is not None
    )


def is_tpu(machine_type: str) -> bool:
    """Whether a machine type has a TPU."""
    return bool(re.fullmatch(r"cloud-tpu|(ct|tpu)\w+-\w+-\d+t", machine_type))


def gpu_problem(machine_type: str | None, gpu: str, count: int) -> tuple[str, str]:
    """Returns what is wrong with the GPUs of a machine, and the fix; empty if nothing.

    Args:
      machine_type: None if the service chooses one.
      gpu: by Vertex AI's name.
      count: per machine.
    """
    if gpu in _ENDED:
        return f"{gpu} is no longer offered", "take NVIDIA_TESLA_T4 or NVIDIA_L4"
    if gpu not in GPUS or (machine_type is not None and not is_known(machine_type)):
        return "", ""
    counts = _counts(gpu)
    if count not in counts:
        listed = ", ".join(map(str, counts))
        return f"no machine has {count} {gpu}", f"take one of {listed}"
    if machine_type is None or _BUILT_IN.get(machine_type) == (gpu, count):
        return "", ""
    carriers = [name for name, has in _BUILT_IN.items() if has == (gpu, count)]
    if gpu in _ATTACHED_TO_N1:
        most = _ATTACHED_TO_N1[gpu][count]
        family, _, size = machine_type.rpartition("-")
        if family.startswith("n1-") and int(size) <= most:
            return "", ""
        carriers = [f"an n1 machine of at most {most} vCPUs"]
    if machine_type in _BUILT_IN:
        built_in, number = _BUILT_IN[machine_type]
        fix = f"write accelerator: {{type: {built_in}, count: {number}}}, or take "
        return (
            f"{machine_type} has {number} {built_in}, not {count} {gpu}",
            fix + " or ".join(carriers),
        )
    what = f"{machine_type} cannot carry {count} {gpu}"
    return what, "take " + " or ".join(carriers)


def gpu_regions(gpu: str) -> frozenset[str]:
    """Returns the regions that are known to have a GPU; empty: not known."""
    return frozenset(_GPU_REGIONS.get(gpu, "").split())


def needs_gpu(machine_type: str) -> tuple[str, int] | None:
    """Returns the GPUs that are part of a machine; None if it has none."""
    return _BUILT_IN.get(machine_type)


def tpu_problem(machine_type: str, topology: str) -> tuple[str, str]:
    """Returns what is wrong with a TPU slice, and the fix; empty if nothing."""
    found = _tpu(machine_type)
    if found is None:
        if is_known(machine_type):
            known = ", ".join(f"{name}-{size}t" for name, size in _tpu_machines())
            return f"{machine_type} has no TPU", f"take one of {known}"
        return "", ""
    family, size = found
    if topology not in family.topologies:
        known = ", ".join(sorted(family.topologies, key=_chips))
        return f"{machine_type} has no topology {topology}", f"take one of {known}"
    chips = _chips(topology)
    # Machines of 1 and 8 chips are a whole slice, several of 4 chips form a larger one.
    if chips % size or (size != 4 and chips != size):
        fits = [
            name
            for name in sorted(family.topologies, key=_chips)
            if _chips(name) == size or (size == 4 and _chips(name) % 4 == 0)
        ]
        return (
            f"a slice {topology} has {chips} chips, {machine_type} has {size}",
            f"take {' or '.join(fits)} here, or another machine",
        )
    return "", ""


def tpu_regions(machine_type: str) -> frozenset[str]:
    """Returns the regions that are known to have a TPU machine; empty: not known."""
    found = _tpu(machine_type)
    return found[0].regions if found else frozenset()


def _counts(gpu: str) -> list[int]:
    built_in = {count for name, count in _BUILT_IN.values() if name == gpu}
    return sorted({*_ATTACHED_TO_N1.get(gpu, {}), *built_in})


def _tpu(machine_type: str) -> tuple[_TpuFamily, int] | None:
    match = re.fullmatch(r"(\w+-\w+)-(\d+)t", machine_type)
    family = _TPUS.get(match[1]) if match else None
    if match is None or family is None or int(match[2]) not in family.sizes:
        return None
    return family, int(match[2])


def _tpu_machines() -> list[tuple[str, int]]:
    return [(name, size) for name, tpu in _TPUS.items() for size in tpu.sizes]


def _chips(topology: str) -> int:
    return math.prod(int(side) for side in topology.split("x"))
