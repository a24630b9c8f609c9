"""A rehearsal names what an accelerator refuses, by layer, file and line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline.config.load import load_config
from pipeline.config.resolve_features import feature_set_of
from pipeline.config.validate import validate_config
from pipeline.training.rehearsal.result import Finding, Rehearsal
from sluice.project import own_root

pytestmark = pytest.mark.tf

BOTH = ("train", "eval")
Rehearse = Callable[..., Rehearsal]
LineOf = Callable[[str], str]


def _places(findings: list[Finding]) -> set[tuple[str, str | None, str | None]]:
    return {(op, f.layer, f.location) for f in findings for op in f.ops}


def test_all_that_a_tpu_refuses_is_found_at_once(rehearse, line_of):
    found = rehearse("tpu", "model=refused_models:many")

    assert _places(found.refused) == {
        ("AsString", "'texts' (Texts)", line_of("text = tf.strings.as_string(x)")),
        ("StringToNumber", "'texts' (Texts)", line_of("tf.strings.to_number(text)")),
        ("tf.py_function", "'python' (Python)", line_of("tf.py_function(")),
        ("tf.print", "'prints' (Prints)", line_of("tf.print(")),
        (
            "LookupTableFindV2",
            "'integer_lookup' (IntegerLookup)",
            line_of("self.ids(tf.cast"),
        ),
    }
    assert {finding.steps for finding in found.refused} == {BOTH}
    places = _places(found.warnings)
    assert ("Where", "'masks' (Masks)", line_of("tf.boolean_mask(")) in places
    assert ("Cast", "'double' (Double)", line_of("tf.cast(x, tf.float64)")) in places


def test_layers_of_keras_are_named_by_the_line_that_makes_them(rehearse, line_of):
    found = rehearse("tpu", "model=refused_models:rotates")

    by_layer = {finding.layer: finding for finding in found.refused}
    turn = by_layer["'turn' (RandomRotation)"]
    assert turn.ops == ("ImageProjectiveTransformV3",)
    assert turn.location == line_of("L.RandomRotation(")
    assert turn.steps == ("train",)
    text = by_layer["'tf.strings.as_string' (TFOpLambda)"]
    assert text.location == line_of("tf.strings.as_string(x))")


@pytest.mark.parametrize(
    ("model", "layer", "line", "steps", "reason"),
    [
        (
            "random_size",
            "'random' (Random)",
            "tf.random.uniform([count])",
            BOTH,
            "must be a compile-time constant",
        ),
        (
            "loop",
            "'loops' (Loops)",
            "while tf.reduce_sum",
            ("train",),
            "maximum_iteration",
        ),
    ],
)
def test_a_size_that_depends_on_values_is_refused(
    rehearse, line_of, model, layer, line, steps, reason
):
    (found,) = rehearse("tpu", f"model=refused_models:{model}").findings

    assert found.refused and reason in found.what
    assert (found.layer, found.location, found.steps) == (layer, line_of(line), steps)


def test_a_model_that_a_tpu_takes_passes(rehearse):
    options = ("train.precision=mixed_float16", "train.steps_per_execution=4")
    found = rehearse("tpu", *options)

    assert found.findings == ()
    assert found.checked == (
        "train and eval step compiled by XLA: mixed_float16, 4 steps per execution, "
        "8 examples per replica; a multiple of 128 would use the TPU better"
    )
    assert found.assumptions == ("8 replicas",)


def test_the_precision_is_that_of_before(rehearse):
    import tensorflow as tf

    rehearse(
        "tpu", "train.precision=mixed_bfloat16", "model=refused_models:no_such_feature"
    )

    assert tf.keras.mixed_precision.global_policy().name == "float32"


def test_a_low_precision_output_is_a_warning(rehearse):
    overrides = ("train.precision=mixed_bfloat16", "model=refused_models:half_output")
    (warning,) = rehearse("tpu", *overrides).findings

    assert not warning.refused
    assert "output is bfloat16" in warning.what


@pytest.mark.parametrize("accelerator", ["tpu", "gpu"])
@pytest.mark.parametrize(
    ("model", "line", "message"),
    [
        ("raises", "tf.matmul(", "cannot build the model: ValueError: Dimensions"),
        ("no_such_feature", '["z_xf"]', "cannot build the model: KeyError: 'z_xf'"),
        (
            "does_not_train",
            "raise NotImplementedError",
            "the train step cannot be traced: NotImplementedError: no training yet",
        ),
    ],
)
def test_an_exception_of_the_model_is_refused_by_all(
    rehearse, line_of, accelerator, model, line, message
):
    (found,) = rehearse(accelerator, f"model=refused_models:{model}").findings

    assert found.refused and message in found.what
    assert found.location == line_of(line)


def test_on_a_gpu_ops_of_the_host_are_warnings(rehearse, line_of):
    found = rehearse("gpu", "model=refused_models:many")

    assert not found.refused
    assert {op for op, *_ in _places(found.warnings)} == {
        "AsString",
        "StringToNumber",
        "tf.py_function",
        "tf.print",
        "LookupTableFindV2",
    }
    assert line_of("tf.print(") in {finding.location for finding in found.warnings}


def test_without_gpu_kernels_only_calls_of_the_host_are_known(rehearse, monkeypatch):
    import tensorflow as tf

    monkeypatch.setattr(tf.test, "is_built_with_gpu_support", lambda: False)
    found = rehearse("gpu", "model=refused_models:many")

    assert {op for op, *_ in _places(list(found.findings))} == {
        "tf.py_function",
        "tf.print",
    }


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("dence", "no layer is named 'dence'"), ("*", "there is nothing to train")],
)
def test_layers_that_cannot_be_frozen_are_refused(rehearse, pattern, message):
    section = f"train.fine_tune={{freeze: ['{pattern}'], unfreeze_after: 1}}"
    (found,) = rehearse("gpu", section).findings

    assert found.refused and message in found.what


def test_what_keras_refuses_to_compile_is_refused(rehearse):
    metric = "train.metrics=[{class: AUC, params: {curve: none}}]"
    (found,) = rehearse("gpu", metric).findings

    assert found.refused
    assert "the model cannot be compiled: AUC: " in found.what
    assert "curve" in found.what


@pytest.mark.parametrize(
    ("accelerator", "override", "without_weights"),
    [
        ("tpu", "train.class_weights=null", {"_weights = data"}),
        ("tpu", "train.class_weights=balanced", set()),
        ("gpu", "train.class_weights=balanced", {"_weights_of_padding = data"}),
        ("gpu", "train.sample_weight=w", set()),
    ],
)
def test_batches_have_weights_where_training_has_them(
    rehearse, line_of, accelerator, override, without_weights
):
    found = rehearse(accelerator, "model=refused_models:weighted", override)

    places = {finding.location for finding in found.findings}
    assert places == {line_of(line) for line in without_weights}


def test_strings_from_preprocessing_reach_only_the_host(rehearse):
    found = rehearse("tpu", "preprocessing=refused_models:words", "features=null")

    (finding,) = found.findings
    assert finding.refused and "word_xf is string" in finding.what


@pytest.mark.parametrize(
    ("function", "message"),
    [("sparse", "these are sparse: ['x_xf']"), ("doubles", "invalid dtype")],
)
def test_what_transform_or_the_model_cannot_take_is_refused(
    rehearse, function, message
):
    own = (f"preprocessing=refused_models:{function}", "features=null")
    (found,) = rehearse("tpu", *own).findings

    assert found.refused and message in found.what and "x_xf" in found.what


CONFIGS = sorted((own_root() / "configs").glob("*.yaml"))


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_bundled_configs_pass_on_a_tpu(rehearse, config):
    found = rehearse("tpu", "train.precision=mixed_bfloat16", config=config)

    # Of digits, whose batches are small, XLA takes the steps too.
    assert not [item for item in found.findings if item.refused or item.steps]


def test_a_bundled_config_passes_on_a_gpu(rehearse):
    found = rehearse("gpu", config=own_root() / "configs" / "digits.yaml")

    assert found.findings == ()


def test_sizes_of_vocabularies_are_assumed():
    from pipeline.training.rehearsal.rehearse import PREPROCESSING
    from pipeline.training.rehearsal.traced_preprocessing import TracedPreprocessing

    valid = validate_config(load_config(str(own_root() / "configs" / "taxi.yaml")))
    features = feature_set_of(valid.config, valid.schema)
    traced = TracedPreprocessing(PREPROCESSING, valid.schema, features)

    assert traced.vocabulary_size_by_name("payment_type_xf") == 100
    assert traced.vocabulary_size_by_name("trip_start_day_xf") == 1000
    assert "100 values in the vocabulary payment_type_xf" in traced.assumptions


@pytest.mark.parametrize(("batch_size", "is_refused"), [(32, False), (20, True)])
def test_a_batch_that_no_tpu_can_divide_is_refused(rehearse, batch_size, is_refused):
    found = rehearse(
        "tpu", f"train.batch_size={batch_size}", "model=refused_models:no_such_feature"
    )

    what = f"train.batch_size {batch_size} is not a multiple of 8 replicas x 8 examples"
    (finding,) = [item for item in found.findings if what in item.what]
    assert finding.refused == is_refused


def test_another_strategy_than_the_accelerators_is_a_warning(rehearse):
    found = rehearse(
        "tpu", "train.strategy=mirrored", "model=refused_models:no_such_feature"
    )

    (warning,) = found.warnings
    assert warning.what == "with train.strategy mirrored no TPU would be used"
