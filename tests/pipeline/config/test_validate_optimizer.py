"""Optimizer, schedule, loss, metrics and callbacks of a config."""

from __future__ import annotations

import pytest

from pipeline.config.keras_classes import mode_of
from pipeline.config.load import load_config
from pipeline.graph.node_registry import NODES
from sluice.code_fingerprint import digests_of
from sluice.project import own_root

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("override", "message", "rest"),
    [
        ("train.optimizer=Adm", "no optimizer 'Adm'", "did you mean 'Adam'?"),
        (
            "train.optimizer={class: SGD, params: {momentun: 0.9}}",
            "SGD has no parameter 'momentun' here",
            "did you mean 'momentum'?",
        ),
        (
            "train.optimizer={class: SGD, params: {learning_rate: 0.9}}",
            "'learning_rate' has a key of its own",
            "train.learning_rate",
        ),
        (
            "train.optimizer={class: Adam, params: {beta_1: 1.5}}",
            "invalid 'beta_1' of Adam",
            "at least 0 and below 1",
        ),
        (
            "train.optimizer={class: SGD, params: {momentum: high}}",
            "invalid 'momentum' of SGD",
            "(a string)",
        ),
        (
            "train.loss=BinaryCrossEntropi",
            "no loss 'BinaryCrossEntropi'",
            "did you mean 'BinaryCrossentropy'?",
        ),
        (
            "train.loss=SparseCategoricalCrossentropy",
            "does not fit the number of classes",
            "BinaryCrossentropy, ",
        ),
        (
            "train.loss={class: BinaryCrossentropy, params: {from_logits: true}}",
            "BinaryCrossentropy has no parameter 'from_logits' here",
            "label_smoothing",
        ),
        ("train.metrics=[AUC, AUC]", "two metrics are named 'auc'", "name: ..."),
        ("train.metrics=[F1Score]", "F1Score needs the parameter 'average'", ""),
        ("train.metrics=[CategoricalAccuracy]", "does not fit the number of", "AUC"),
        (
            "train.clip_gradients={norm: 1, value: 1}",
            "gradients are clipped in one way",
            "norm, value",
        ),
        ("train.clip_gradients={}", "gradients are clipped in one way", "none"),
        (
            "train.learning_rate={kind: piecewise, boundaries: [2, 1], values: [1, 2]}",
            "the boundaries are not in ascending order",
            "2, 1",
        ),
        (
            "train.learning_rate={kind: piecewise, boundaries: [1, 2], values: [0.1]}",
            "each boundary needs one value",
            "2 values",
        ),
        (
            "train.early_stopping={metric: val_acu}",
            "there is no metric 'val_acu'",
            "did you mean 'val_auc'?",
        ),
        (
            "train.reduce_on_plateau={metric: auc_roc}",
            "there is no metric 'auc_roc'",
            "binary_accuracy",
        ),
        (
            "train.callbacks=[my_callbacks:Missing]",
            "my_callbacks",
            "train.callbacks[0].function",
        ),
    ],
)
def test_what_is_refused(refused, override, message, rest):
    text = refused(override)

    assert message in text
    assert rest in text
    assert override.partition("=")[0] in text


def test_a_metric_whose_direction_is_unknown(refused):
    metric = "train.metrics=[{class: Precision, params: {name: kept}}]"
    watched = "train.early_stopping.metric=val_kept"

    assert "whether more or less of 'val_kept' is better" in refused(metric, watched)


@pytest.mark.parametrize(
    "overrides",
    [
        ("train.optimizer={class: AdamW, params: {beta_1: 0.8}}",),
        ("train.loss={class: BinaryFocalCrossentropy, params: {gamma: 1.0}}",),
        ("train.clip_gradients.global_norm=1",),
        ("train.metrics=[]",),
        (
            "train.metrics=[AUC, {class: AUC, params: {curve: PR, name: pr}}]",
            "train.early_stopping={metric: val_pr, mode: max}",
        ),
        (
            "label={feature: digit}",
            "evaluate.thresholds=[]",
            "evaluate={metrics: [SparseCategoricalAccuracy]}",
            "train.loss={class: CategoricalCrossentropy, "
            "params: {label_smoothing: 0.1}}",
            "train.metrics=[{class: F1Score, params: {average: macro}}]",
            "train.early_stopping={metric: val_f1_score}",
        ),
    ],
)
def test_what_is_valid(validate, overrides):
    validate(*overrides)


def test_a_warm_up_that_never_ends_is_a_warning(validate):
    found = validate("train.learning_rate={initial: 0.1, warmup_epochs: 7}").warnings

    assert any("training ends within the warm-up" in warning for warning in found)


def test_an_edit_of_a_callback_changes_the_trainers_code(project):
    override = "train.callbacks=[my_callbacks:make]"
    config = load_config("fares", overrides=[override], cwd=project)
    (trainer,) = (node for node in NODES if node.id == "Trainer")
    found = []
    for text in ("def make(): ...", "def make(): return 1"):
        (project / "my_callbacks.py").write_text(text)
        found.append(digests_of(trainer.all_code(config), [project, own_root()]))

    changed = [name for name in found[0] if found[0][name] != found[1][name]]
    assert changed == ["my_callbacks"]


@pytest.mark.parametrize(
    ("metric", "mode"),
    [
        ("val_loss", "min"),
        ("val_auc", "max"),
        ("binary_accuracy", "max"),
        ("val_false_positives", "min"),
        ("true_positives", "max"),
        ("root_mean_squared_error", "min"),
        ("mine", None),
    ],
)
def test_whether_more_of_a_metric_is_better(metric, mode):
    assert mode_of(metric) == mode
