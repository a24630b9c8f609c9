"""Training step 3: what is reported while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice import progress
from sluice.compat import exclude_keras_from_autograph

pytestmark = pytest.mark.tf


def test_epochs_are_counted_over_the_whole_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow as tf

    from pipeline.training.fit import ReportEpochs

    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv(progress.PROGRESS_FILE, str(path))
    exclude_keras_from_autograph()
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile(loss="mse")
    data = tf.data.Dataset.from_tensor_slices(([[1.0]], [[0.0]])).batch(1)
    # The fourth epoch was cut: it has a fit of its own.
    for first, until in [(3, 4), (4, 6)]:
        callbacks = [ReportEpochs(6)]
        model.fit(
            data, initial_epoch=first, epochs=until, callbacks=callbacks, verbose=0
        )
    lines, _ = progress.read(path)
    assert [(line["epoch"], line["epochs"]) for line in lines] == [
        (4, 6),
        (5, 6),
        (6, 6),
    ]
    assert set(lines[0]["metrics"]) == {"loss"}
