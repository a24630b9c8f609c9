"""Validates the section ``train`` of a config: keys that depend on each other."""

from __future__ import annotations

from pipeline.config.problems import Problems
from pipeline.config.train import Train

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
    elif processes and (train.batch_size or 0) % processes:
        problems.add(
            ("train", "batch_size"),
            "the batch cannot be divided over the processes",
            expected=f"a multiple of {processes}",
            actual=str(train.batch_size),
        )
