"""What an accelerator refuses in a training, and what it may refuse."""

from __future__ import annotations

import pytest

from sluice.project import own_root

pytestmark = pytest.mark.tf


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("looks", "train step: XLA cannot compile it: "),
        ("many", "be called within the step: tf.py_function in while/model/python/"),
    ],
)
def test_the_first_error_of_the_compiler_is_told(check, model, message):
    found = check("tpu", f"model=refused_models:{model}")
    assert message in found.refused[0]


def test_a_model_that_a_tpu_takes_passes(check):
    options = ("train.precision=mixed_float16", "train.steps_per_execution=4")
    found = check("tpu", *options)
    assert (found.refused, found.warnings) == ([], [])
    assert found.checked == (
        "executions of 4 steps traced and the step compiled by XLA: mixed_float16, "
        "8 examples per replica"
    )
    assert found.assumptions == ["8 replicas"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model=refused_models:raises", "cannot build the model: ValueError: "),
        ("model=refused_models:does_not_train", "NotImplementedError: no training yet"),
        ("train.fine_tune={freeze: [dence]}", "no layer is named 'dence'"),
        ("train.metrics=[{class: AUC, params: {curve: none}}]", "cannot be compiled"),
    ],
)
def test_whatever_is_raised_is_refused(check, override, message):
    (refused,) = check("tpu", override).refused
    assert message in refused


def test_what_the_model_cannot_take_is_refused(check):
    own = ("preprocessing=refused_models:sparse", "features=null")
    (refused,) = check("tpu", *own).refused
    assert "these are sparse: ['x_xf']" in " ".join(refused.split())


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "config",
    sorted((own_root() / "configs").glob("*.yaml")),
    ids=lambda path: path.stem,
)
def test_bundled_configs_pass_on_a_tpu(check, config):
    overrides = (
        "train.precision=mixed_bfloat16",
        "train.batch_size=null",
        "train.batch_per_replica=8",
    )
    assert check("tpu", *overrides, config=config).refused == []


def test_on_a_gpu_calls_of_the_host_are_warnings(check):
    found = check("gpu", "model=refused_models:many")
    assert found.refused == []
    assert "tf.py_function" in found.warnings[0] and "tf.print" in found.warnings[0]
