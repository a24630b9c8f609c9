"""Validates the section ``train`` of a config: keys that depend on each other."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path

from pipeline.config.batch_size import TPU_MULTIPLE, nearest_sizes
from pipeline.config.problems import Problems
from pipeline.config.train import TRAINED_BEFORE, Train
from sluice.errors import did_you_mean

_OF_PROCESSES = ("auto", "multi_worker", "parameter_server")
# Pairs of keys of which at most one is given.
_EXCLUSIVE = (
    ("processes", "replicas", "processes and replicas exclude each other"),
    ("batch_per_replica", "batch_size", "the batch size is given twice"),
    (
        "devices.memory_growth",
        "devices.memory_limit_mb",
        "GPU memory cannot both grow and be limited",
    ),
    ("devices.logical", "replicas", "the number of logical devices is given twice"),
)


def check_strategy(train: Train, problems: Problems) -> None:
    """Checks the keys of strategy, processes, batch, precision and devices."""
    for key, other, what in _EXCLUSIVE:
        if attrgetter(key)(train) and attrgetter(other)(train):
            path = ("train", *key.split("."))
            expected = f"train.{key} or train.{other}"
            problems.add(path, what, expected=expected, actual="both")
    _check_processes(train, problems)
    if train.replicas is not None and train.strategy not in ("auto", "mirrored"):
        problems.add(
            ("train", "replicas"),
            f"the strategy {train.strategy} takes no number of replicas",
            expected="train.strategy: auto or mirrored",
            actual=train.strategy,
        )
    _check_divisible("batch_size", train, train.replicas, "replicas", problems)
    if train.strategy == "tpu":
        for key in ("batch_size", "batch_per_replica"):
            _check_divisible(key, train, TPU_MULTIPLE, "replicas of a TPU", problems)
    if train.strategy == "central_storage" and train.precision == "mixed_float16":
        problems.add(
            ("train", "precision"),
            "Keras cannot scale the loss of mixed_float16 with central storage",
            expected="mixed_bfloat16 or float32, or another strategy",
            actual=train.precision,
        )


def _check_processes(train: Train, problems: Problems) -> None:
    processes, path = train.processes, ("train", "processes")
    has_servers = train.strategy == "parameter_server"
    if processes and train.strategy not in _OF_PROCESSES:
        problems.add(
            path,
            f"the strategy {train.strategy} trains in one process",
            expected=f"train.strategy: {', '.join(_OF_PROCESSES)}; or no processes",
            actual=str(processes),
        )
    if train.parameter_servers and not (processes and has_servers):
        problems.add(
            ("train", "parameter_servers"),
            "parameter servers are for their strategy, and have workers",
            expected="train.strategy: parameter_server and train.processes",
        )
    if not has_servers:
        _check_divisible("batch_size", train, processes, "processes", problems)
    elif processes and not train.parameter_servers:
        problems.add(
            path,
            "the strategy parameter_server has no parameter server",
            expected="train.parameter_servers: 1 or more",
        )


def _check_divisible(
    key: str, train: Train, divisor: int | None, over: str, problems: Problems
) -> None:
    size = getattr(train, key)
    if size and divisor and size % divisor:
        problems.add(
            ("train", key),
            f"the batch cannot be divided over the {over}",
            expected=f"a multiple of {divisor} per replica"
            if train.strategy == "tpu"
            else f"a multiple of {divisor}",
            actual=str(size),
            hint=nearest_sizes(key, size, divisor),
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
