"""Lints the machines of nodes against the table of ``machine_types``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pipeline.config.cloud import Accelerator, NodeResources
from runners.cloud.lint import machine_types
from runners.cloud.lint.finding import Finding, error, warning
from runners.cloud.trainer_job import needs_custom_job
from sluice.errors import did_you_mean


def lint_resources(
    own: NodeResources, region: str | None, at: Callable[..., str], *, can_be_job: bool
) -> Iterator[Finding]:
    """Yields findings about what a node is given on Vertex AI.

    Args:
      own: its settings, or those of ``default``.
      region: ``cloud.region``.
      at: returns the place of these settings, or of a key below.
      can_be_job: whether it is one of ``job_kinds``.
    """
    limits = {"cpu": ("CPU cores", own.cpu, machine_types.MAX_CPU)}
    limits["memory_gb"] = "GB of memory", own.memory_gb, machine_types.MAX_MEMORY_GB
    for key, (unit, value, most) in limits.items():
        if value is not None and value > most:
            what = f"{value:g} {unit} are more than the {most} that a step can have"
            yield error(at(key), what, f"take at most {most}")
    for key in ("machine_type", "workers", "tpu"):
        if getattr(own, key) is not None and not can_be_job:
            yield error(
                at(key),
                f"only the Trainer and Tuners can have {key}; other nodes get "
                "a machine by cpu, memory_gb and accelerator",
                f"leave {key} out",
            )
    if own.accelerator is not None and not can_be_job:
        yield from lint_gpu(None, own.accelerator, region, at("accelerator"))


def lint_job(
    own: NodeResources, strategy: str, region: str | None, at: Callable[..., str]
) -> Iterator[Finding]:
    """Yields findings about the machines of the Trainer or a Tuner on Vertex AI.

    Args:
      own: its settings, with those of ``default``.
      strategy: ``train.strategy``; "auto" for a Tuner.
      region: ``cloud.region``.
      at: returns the place of these settings, or of a key below.
    """
    wanted = {"multi_worker": (own.workers or 1) > 1, "tpu": own.tpu is not None}
    for name, given in wanted.items():
        if given and strategy not in (name, "auto"):
            yield error(
                at("tpu" if name == "tpu" else "workers"),
                f"train.strategy is {strategy}, which does not use it",
                f"write train: {{strategy: {name}}}",
            )
    machine = own.machine_type
    if machine is None and needs_custom_job(own):
        what = "workers and a TPU need a machine_type"
        yield error(at(), what, "write one, such as n1-standard-8 or ct5lp-hightpu-4t")
    if own.accelerator is not None:
        yield from lint_gpu(machine, own.accelerator, region, at("accelerator"))
    if machine is not None:
        yield from lint_machine_name(machine, at("machine_type"))
        built_in = machine_types.needs_gpu(machine)
        if built_in and own.accelerator is None:
            gpu, count = built_in
            yield error(
                at("machine_type"),
                f"{machine} has {count} {gpu}, which the service wants to be named",
                f"write accelerator: {{type: {gpu}, count: {count}}}",
            )
        if own.tpu is None and machine_types.is_tpu(machine):
            what = f"{machine} has a TPU, whose topology is missing"
            yield error(at("machine_type"), what, "write tpu: {topology: ...}")
    if own.tpu is not None and own.accelerator is not None:
        what = "a machine has a TPU or GPUs, not both"
        yield error(at("accelerator"), what, "leave one of them out")
    if own.tpu is not None and machine is not None:
        yield from _lint_tpu(machine, own.tpu.topology, region, at)


def _lint_tpu(
    machine: str, topology: str, region: str | None, at: Callable[..., str]
) -> Iterator[Finding]:
    what, fix = machine_types.tpu_problem(machine, topology)
    if what:
        yield error(at("tpu", "topology"), what, fix)
    regions = machine_types.tpu_regions(machine)
    yield from _lint_region(machine, regions, region, at("machine_type"))


def _lint_region(
    name: str, regions: frozenset[str], region: str | None, where: str
) -> Iterator[Finding]:
    if regions and region is not None and region not in regions:
        yield warning(
            where,
            f"{region} had no {name} in {machine_types.AS_OF}",
            f"regions that had: {', '.join(sorted(regions))}",
        )


def lint_gpu(
    machine: str | None, gpu: Accelerator, region: str | None, where: str
) -> Iterator[Finding]:
    """Yields findings about the GPUs of a machine, None for one of the service's."""
    yield from _lint_region(
        gpu.type, machine_types.gpu_regions(gpu.type), region, where
    )
    what, fix = machine_types.gpu_problem(machine, gpu.type, gpu.count)
    if what:
        yield error(where, what, fix)
    elif gpu.type not in machine_types.GPUS:
        yield warning(
            where,
            f"Vertex AI had no accelerator {gpu.type!r} in {machine_types.AS_OF}",
            did_you_mean(gpu.type, machine_types.GPUS) or "check its name",
        )


def lint_machine_name(machine: str, where: str) -> Iterator[Finding]:
    """Yields a warning if the table has no such machine."""
    if not (machine_types.is_known(machine) or machine == "cloud-tpu"):
        yield warning(
            where,
            f"Vertex AI had no machine type {machine!r} in {machine_types.AS_OF}",
            "check its name",
        )
