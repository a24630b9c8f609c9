"""Fashion-MNIST, from the published files to a pushed model."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config.load import load_config
from sample_data import catalog
from sluice.workspace import locate

FILES = Path("/usr/share/datasets/fashion-mnist")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.real_data,
    pytest.mark.acceptance,
    pytest.mark.skipif(
        not FILES.is_dir(), reason="apt-get install dataset-fashion-mnist"
    ),
]


def test_the_pushed_model_reaches_the_floor(project, run_config):
    folder = project / "data" / "fashion-mnist"
    catalog.make("fashion-mnist", folder, source=FILES)
    # Half of its config's epochs reach the floor, too.
    config = load_config("fashion-mnist", overrides=["train.epochs=4"], cwd=project)
    record = run_config(config, locate(project, "fashion-mnist"))

    assert (record.status, record.pushes[0].state) == ("succeeded", "pushed")
    row = record.gate_rows("model")[0]
    assert (row.check, row.comparison, row.limit) == ("accuracy", ">=", 0.9)
    assert row.actual >= 0.9
