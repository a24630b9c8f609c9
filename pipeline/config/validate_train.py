"""Validates the section ``train`` of a config: keys that depend on each other."""

from __future__ import annotations

from pathlib import Path

from pipeline.config.batch_size import TPU_MULTIPLE, nearest_sizes
from pipeline.config.problems import Problems
from pipeline.config.train import TRAINED_BEFORE, Train
from sluice.errors import did_you_mean

_OF_PROCESSES = ("auto", "multi_worker", "parameter_server")


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
    elif processes and train.batch_size and train.batch_size % processes:
        problems.add(
            ("train", "batch_size"),
            "the batch cannot be divided over the processes",
            expected=f"a multiple of {processes}",
            actual=str(train.batch_size),
            hint=nearest_sizes("batch_size", train.batch_size, processes),
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
    if train.replicas and train.batch_size and train.batch_size % train.replicas:
        problems.add(
            ("train", "batch_size"),
            "the batch cannot be divided over the replicas",
            expected=f"a multiple of {train.replicas}",
            actual=str(train.batch_size),
            hint=nearest_sizes("batch_size", train.batch_size, train.replicas),
        )
    if train.strategy == "tpu":
        for key in ("batch_size", "batch_per_replica"):
            size = getattr(train, key)
            if size is not None and size % TPU_MULTIPLE:
                problems.add(
                    ("train", key),
                    "the batch cannot be divided over the replicas of a TPU",
                    expected=f"a multiple of {TPU_MULTIPLE} per replica",
                    actual=str(size),
                    hint=nearest_sizes(key, size, TPU_MULTIPLE),
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


def check_warm_start(train: Train, path: Path | None, problems: Problems) -> None:
    """Checks that a model is at the path of ``warm_start``, if it is one."""
    if path is None or (path / "saved_model.pb").is_file():
        return
    if not (path.suffix == ".h5" and path.is_file()):
        problems.add(
            ("train", "warm_start"),
            f"there is no model {train.warm_start!r}",
            expected=f"{', '.join(TRAINED_BEFORE)}; or the path of a SavedModel or of "
            "a .h5 file of weights",
            actual=f"nothing of this kind at {path}",
            hint=did_you_mean(train.warm_start, TRAINED_BEFORE),
        )


def check_fine_tune(train: Train, problems: Problems) -> None:
    """Checks that layers are frozen before they are unfrozen, and in time."""
    given, path = train.fine_tune, ("train", "fine_tune")
    if given is None:
        return
    after = given.unfreeze_after
    if not given.freeze:
        problems.add(
            (*path, "freeze"),
            "fine_tune freezes no layer",
            expected="names of layers, such as [backbone]",
        )
    if after is not None and after >= train.epochs:
        problems.add(
            (*path, "unfreeze_after"),
            "no epoch is left after the layers are unfrozen",
            expected=f"fewer than the {train.epochs} epochs of train.epochs",
            actual=str(after),
        )
    if given.learning_rate is not None and after is None:
        problems.add(
            (*path, "learning_rate"),
            "fine_tune.learning_rate is the one after unfreezing, which never happens",
            expected="unfreeze_after beside it; or train.learning_rate alone",
        )
