"""What a run refuses before its first node because the Trainer would fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.config.load import load_config
from pipeline.config.validate import validate_config
from sluice.errors import ConfigError, ExitCode

pytestmark = pytest.mark.tf

OWN_CODE = """\
import tensorflow as tf

class Good(tf.keras.callbacks.Callback):
    def __init__(self, every=1):
        raise RuntimeError("called before the run")

class NoCallback:
    pass

def make(path):
    raise RuntimeError("called before the run")

def build_model(inputs, params):
    raise RuntimeError("called before the run")

def build_without_params(inputs):
    ...

number = 3
"""


@pytest.fixture
def check(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    (project / "own_training_code.py").write_text(OWN_CODE)
    (project / "broken_training_code.py").write_text("import nowhere\ndef make(): ...")
    monkeypatch.syspath_prepend(str(project))

    def check(*overrides: str) -> None:
        from pipeline.training.check_training import check_training

        config = load_config("digits", cwd=project, overrides=overrides)
        check_training(validate_config(config).config)

    return check


@pytest.mark.parametrize(
    ("override", "where", "message"),
    [
        (
            "train.optimizer={class: Adam, params: {epsilon: small}}",
            "train.optimizer",
            "Adam fails with these params",
        ),
        (
            "train.optimizer={class: SGD, params: {use_ema: true, "
            "ema_overwrite_frequency: often}}",
            "train.optimizer",
            "SGD cannot be created",
        ),
        (
            "train.loss={class: Huber, params: {delta: wide}}",
            "train.loss",
            "Huber fails with these params",
        ),
        (
            "train.metrics=[Hinge, {class: AUC, params: {curve: round}}]",
            "train.metrics[1]",
            "AUC cannot be created",
        ),
        ("train.devices.visible=[70]", "train.devices.visible", "there is no GPU 70"),
        (
            "train.callbacks=[own_training_code:NoCallback]",
            "train.callbacks[0].function",
            "the class own_training_code:NoCallback is not a callback",
        ),
        (
            "train.callbacks=[own_training_code:number]",
            "train.callbacks[0].function",
            "own_training_code:number cannot be called",
        ),
        (
            "train.callbacks=[{function: own_training_code:Good, params: {evry: 2}}]",
            "train.callbacks[0].function",
            "unexpected keyword argument 'evry'",
        ),
        (
            "train.callbacks=[own_training_code:make]",
            "train.callbacks[0].function",
            "missing a required argument: 'path'",
        ),
        (
            "train.callbacks=[broken_training_code:make]",
            "train.callbacks[0].function",
            "ModuleNotFoundError: No module named 'nowhere'",
        ),
        (
            "model=own_training_code:build_without_params",
            "model",
            "too many positional arguments",
        ),
    ],
)
def test_what_is_refused(check, override, where, message):
    with pytest.raises(ConfigError) as caught:
        check(override)
    assert caught.value.exit_code == ExitCode.USAGE
    assert message in str(caught.value)
    assert where in str(caught.value.where)


def test_the_users_code_is_imported_and_not_called(check):
    check(
        "train.callbacks=[own_training_code:Good, "
        "{function: own_training_code:make, params: {path: logs}}]",
        "model=own_training_code:build_model",
    )


def test_what_keras_takes(check):
    check(
        "train.optimizer={class: SGD, params: {momentum: 0.9, nesterov: true}}",
        "train.loss={class: CategoricalFocalCrossentropy, params: {gamma: 1.0}}",
        "train.metrics=[{class: F1Score, params: {average: macro}}]",
        "train.learning_rate={kind: cosine, warmup_epochs: 1}",
        "train.clip_gradients={norm: 1}",
    )
