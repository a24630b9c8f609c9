"""Which replicas the settings give in one process, on logical CPUs."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from pipeline.config.train import Train
from sluice.errors import SluiceError
from tests.kit.forked_command import call_as_node

pytestmark = pytest.mark.tf


def choose(given, result):
    """Writes how a training would be distributed: devices are configured once."""
    from pipeline.training.strategy.distribution import choose_distribution

    try:
        text = choose_distribution(Train.model_validate(given)).line
    except SluiceError as error:
        text = str(error)
    Path(result).write_text(text)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "one_device: 1 replica on the CPU, since no accelerator is visible"),
        ({"replicas": 4}, "mirrored: 4 replicas on 4 CPUs, since train.replicas is 4"),
        (
            {"strategy": "central_storage", "replicas": 2},
            "central_storage: 2 replicas on 2 CPUs, as train.strategy says",
        ),
        ({"devices": {"visible": [99]}}, "there is no GPU 99: this machine has 0"),
    ],
)
def test_replicas_of_the_cpu(server, tmp_path, given, says):
    result, log = tmp_path / "result", tmp_path / "log"
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    process = multiprocessing.get_context("forkserver").Process(
        target=call_as_node,
        args=(f"{__name__}:choose", environment, log, given, str(result)),
    )
    process.start()
    process.join()
    assert process.exitcode == 0, log.read_text()
    assert result.read_text().splitlines()[0] == says
