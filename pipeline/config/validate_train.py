"""Validates the section ``train`` of a config: keys that depend on each other."""

from __future__ import annotations

from pipeline.config.problems import Problems
from pipeline.config.train import Train

_OF_PROCESSES = ("auto", "multi_worker", "parameter_server")
_TPU_MULTIPLE = 8


def check_processes(train: Train, problems: Problems) -> None:
    """Checks ``processes``, ``parameter_servers`` and what they exclude."""
    processes, path = train.processes, ("train", "processes")
    if processes and train.strategy not in _OF_PROCESSES:
        problems.add(
            path,
            f"the strategy {train.strategy} trains in one process",
            expected=f"train.strategy: {', '.join(_OF_PROCESSES)}; or no processes",
            actual=str(processes),
        )
    if processes and train.replicas:
        problems.add(
            path,
            "processes and replicas exclude each other",
            expected="train.processes or train.replicas",
            actual="both",
        )
    if train.parameter_servers and not (
        processes and train.strategy == "parameter_server"
    ):
        problems.add(
            ("train", "parameter_servers"),
            "parameter servers are for their strategy, and have workers",
            expected="train.strategy: parameter_server and train.processes",
        )
    if processes and train.strategy == "parameter_server":
        if not train.parameter_servers:
            problems.add(
                path,
                "the strategy parameter_server has no parameter server",
                expected="train.parameter_servers: 1 or more",
            )
    elif processes and (train.batch_size or 0) % processes:
        problems.add(
            ("train", "batch_size"),
            "the batch cannot be divided over the processes",
            expected=f"a multiple of {processes}",
            actual=str(train.batch_size),
        )


def check_strategy(train: Train, problems: Problems) -> None:
    """Checks the keys of strategy, batch, precision and devices."""
    if train.batch_size is not None and train.batch_per_replica is not None:
        problems.add(
            ("train", "batch_per_replica"),
            "the batch size is given twice",
            expected="batch_size, of all replicas, or batch_per_replica",
            actual="both",
        )
    if train.replicas is not None and train.strategy not in ("auto", "mirrored"):
        problems.add(
            ("train", "replicas"),
            f"the strategy {train.strategy} takes no number of replicas",
            expected="train.strategy: auto or mirrored",
            actual=train.strategy,
        )
    if train.replicas and (train.batch_size or 0) % train.replicas:
        problems.add(
            ("train", "batch_size"),
            "the batch cannot be divided over the replicas",
            expected=f"a multiple of {train.replicas}",
            actual=str(train.batch_size),
        )
    if train.strategy == "tpu":
        for key in ("batch_size", "batch_per_replica"):
            size = getattr(train, key)
            if size is not None and size % _TPU_MULTIPLE:
                problems.add(
                    ("train", key),
                    "the batch cannot be divided over the replicas of a TPU",
                    expected=f"a multiple of {_TPU_MULTIPLE} per replica",
                    actual=str(size),
                )
    if train.strategy == "central_storage" and train.precision == "mixed_float16":
        problems.add(
            ("train", "precision"),
            "Keras cannot scale the loss of mixed_float16 with central storage",
            expected="mixed_bfloat16 or float32, or another strategy",
            actual=train.precision,
        )
    _check_devices(train, problems)


def _check_devices(train: Train, problems: Problems) -> None:
    devices, path = train.devices, ("train", "devices")
    if devices.memory_growth and devices.memory_limit_mb is not None:
        problems.add(
            (*path, "memory_growth"),
            "GPU memory cannot both grow and be limited",
            expected="memory_growth or memory_limit_mb",
            actual="both",
        )
    if devices.logical is not None and train.replicas is not None:
        problems.add(
            (*path, "logical"),
            "the number of logical devices is given twice",
            expected="train.replicas or train.devices.logical",
            actual="both",
        )
