"""Workers of a training on several machines end after the chief has exported."""

from __future__ import annotations

import threading

import pytest

from sluice.errors import NodeError

pytestmark = pytest.mark.tf


def test_a_worker_waits_for_the_model_of_the_chief(tmp_path):
    from pipeline.training.run_fn import wait_for_model

    model = tmp_path / "model"
    with pytest.raises(NodeError, match="has not exported the model"):
        wait_for_model(str(model), timeout_s=0.01)
    threading.Timer(0.2, model.mkdir).start()
    wait_for_model(str(model))
    assert model.is_dir()
