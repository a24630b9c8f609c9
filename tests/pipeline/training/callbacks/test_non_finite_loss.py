"""A NaN or infinite loss stops training and names step and features."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sluice.errors import NodeError
from sluice.project import own_root
from tests.kit.trainings import files_in, settings
from tests.pipeline.training.callbacks.trainings import train, write_examples

pytestmark = pytest.mark.tf

AUC = ["AUC"]
# On two logical CPUs, which must be made before TensorFlow uses the one.
MIRRORED = """
import json, sys
from pathlib import Path
from sluice.compat import prepare_environment
prepare_environment()
from sluice.errors import NodeError
from tests.pipeline.training.callbacks.trainings import train
two = {"strategy": "mirrored", "replicas": 2}
plateau = {"metric": "learning_rate", "mode": "max", "patience": 1, "factor": 0.5}
history, _ = train(
    Path(sys.argv[2]),
    learning_rate={"initial": 0.1, "warmup_epochs": 1.0},
    reduce_on_plateau=plateau,
    **two,
)
print(json.dumps(history["learning_rate"]))
for metrics in ([], ["AUC"]):
    try:
        train(Path(sys.argv[1]), metrics=metrics, **two)
    except NodeError as error:
        print(json.dumps([str(error), error.where]))
"""


def stopped(data: Path, **given: Any) -> NodeError:
    with pytest.raises(NodeError, match="so training has stopped") as caught:
        train(data, **given)
    return caught.value


def batch_of(data: Path, epoch: int = 0) -> int:
    """Returns the number of the batch that has an example that is not finite."""
    import numpy as np

    from pipeline.training.input.training_input import make_input
    from pipeline.training.strategy.distribution import (
        choose_distribution,
    )
    from tests.pipeline.training.callbacks.trainings import (
        BATCH,
        FEATURES,
        SEED,
        Output,
    )

    distribution = choose_distribution(settings(batch_size=BATCH))
    made = make_input(
        settings(seed=SEED), files_in(data), FEATURES, Output(), distribution
    )
    batches = made.train(epoch)
    return next(
        number
        for number, (features, _) in enumerate(batches, start=1)
        if not np.isfinite(features["fare_xf"]).all()
    )


@pytest.fixture(scope="session")
def infinite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_examples(tmp_path_factory.mktemp("infinite"), train=math.inf)


@pytest.mark.parametrize("metrics", [[], AUC], ids=["loss", "AUC"])
def test_the_batch_and_the_feature_are_named(infinite, metrics):
    error = stopped(infinite, metrics=metrics)

    number = batch_of(infinite)
    assert error.where == f"epoch 1, batch {number}, learning rate 0.01"
    assert "not finite there: fare_xf" in str(error)
    assert "correct these features" in str(error.hint)


def test_several_steps_per_execution_give_a_range(infinite):
    error = stopped(infinite, steps_per_execution=5)

    assert str(error.where).startswith("epoch 1, one of the batches 1 to 5, learning")
    assert "not finite there: fare_xf" in str(error)


def test_weights_after_such_a_loss_are_not_saved(infinite, tmp_path, monkeypatch):
    import numpy as np
    import tensorflow as tf

    from pipeline.training import checkpoint

    monkeypatch.setattr(checkpoint, "LONG_EPOCH_S", 0.0)  # saved after each batch
    error = stopped(infinite, checkpoint_dir=str(tmp_path))

    number = batch_of(infinite)
    assert number > 1
    assert f"batch {number}," in str(error.where)
    reader = tf.train.load_checkpoint(str(tmp_path))
    names = [name for name in reader.get_variable_to_shape_map() if "layer" in name]
    assert names
    assert all(np.isfinite(reader.get_tensor(name)).all() for name in names)


@pytest.mark.parametrize("metrics", [[], AUC], ids=["loss", "AUC"])
def test_a_learning_rate_that_is_too_high(examples, metrics):
    error = stopped(examples, learning_rate=1e30, hidden_units=(4, 4), metrics=metrics)

    assert "learning rate 1e+30" in str(error.where)
    assert "the features there are finite" in str(error)
    assert "lower train.learning_rate" in str(error.hint)


@pytest.mark.parametrize("metrics", [[], AUC], ids=["loss", "AUC"])
def test_an_evaluation(tmp_path, metrics):
    data = write_examples(tmp_path, eval=math.nan)

    error = stopped(data, metrics=metrics)

    where = "validation of epoch 1, batch 1, learning rate 0.01"
    assert error.where == where
    assert "not finite there: fare_xf" in str(error)


def test_another_error_of_a_metric_is_not_explained(examples):
    import tensorflow as tf

    from pipeline.training.callbacks.non_finite_loss import explaining

    with (
        pytest.raises(tf.errors.InvalidArgumentError, match="something else"),
        explaining([]),
    ):
        raise tf.errors.InvalidArgumentError(None, None, "something else")


def test_mirrored_over_two_devices(infinite, examples):
    done = subprocess.run(
        [sys.executable, "-c", MIRRORED, infinite, examples],
        cwd=own_root(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rates, *errors = (json.loads(line) for line in done.stdout.splitlines())
    assert rates == pytest.approx([0.08, 0.1, 0.1, 0.05])
    assert len(errors) == 2, done.stderr
    for text, where in errors:
        assert "not finite there: fare_xf" in text
        assert f"epoch 1, batch {batch_of(infinite)}, " in where
