"""Keys of ``train`` that depend on each other, the schema and the features."""

from __future__ import annotations

import json

import pytest

from pipeline.config.train import DEFAULT_BATCH_SIZE, Train
from sluice.errors import NodeError

pytestmark = pytest.mark.unit

TWO, SERVERS = "processes=2", "strategy=parameter_server"
PHOTO = "features={photo: {kind: image, height: 8, width: 8, channels: 1}}"


def test_the_batch_is_given_for_all_replicas_or_for_each():
    assert Train().global_batch_size(1) == DEFAULT_BATCH_SIZE
    assert Train(batch_size=96).global_batch_size(4) == 96
    assert Train(batch_per_replica=96).global_batch_size(4) == 384
    with pytest.raises(NodeError, match="batch_per_replica 20 is not a multiple of 8"):
        Train(batch_per_replica=20).global_batch_size(8, 8)
    with pytest.raises(NodeError) as failure:
        Train(batch_size=30).global_batch_size(4, 1)
    assert failure.value.hint == "train.batch_size=28 or train.batch_size=32"


@pytest.mark.parametrize(
    "overrides",
    [
        (TWO,),
        (TWO, "strategy=multi_worker"),
        (TWO, SERVERS, "parameter_servers=1"),
        # Workers of parameter servers have no part in a batch.
        (TWO, SERVERS, "parameter_servers=1", "batch_size=33"),
        # In a cluster of its own, TF_CONFIG says how many there are.
        (SERVERS,),
        ("batch_per_replica=3", "replicas=4", "strategy=mirrored"),
        ("fine_tune={freeze: [backbone], unfreeze_after: 6}",),
    ],
)
def test_what_fits_together(validate, overrides):
    validate("train.batch_size=null", *(f"train.{text}" for text in overrides))


@pytest.mark.parametrize(
    ("key", "overrides", "says"),
    [
        ("batch_per_replica", ("batch_per_replica=8", "batch_size=8"), "given twice"),
        ("batch_size", ("processes=3",), "of 3; try train.batch_size=126"),
        ("batch_size", ("strategy=tpu", "batch_size=100"), "100 is not a mult"),
        ("batch_per_replica", ("strategy=tpu", "batch_per_replica=4"), "4 is not a"),
        ("processes", (TWO, "replicas=2"), "exclude each other"),
        ("processes", (TWO, "strategy=mirrored"), "mirrored trains in one process"),
        ("processes", (TWO, SERVERS), "needs train.parameter_servers"),
        ("parameter_servers", ("parameter_servers=1",), "need train.strategy"),
        ("precision", ("strategy=central_storage", "precision=mixed_float16"), "Keras"),
        (
            "devices.memory_growth",
            ("devices.memory_growth=true", "devices.memory_limit_mb=9"),
            "cannot both grow and be limited",
        ),
        (
            "reduce_on_plateau",
            ("reduce_on_plateau={}", "learning_rate={warmup_epochs: 1}"),
            "a learning rate that a schedule sets",
        ),
        (
            "fine_tune.unfreeze_after",
            ("fine_tune={freeze: [backbone], unfreeze_after: 7}",),
            "of 7 epochs none is left",
        ),
        (
            "fine_tune.learning_rate",
            ("fine_tune={freeze: [a], learning_rate: 0.1}",),
            "unfreezing, which never happens",
        ),
        (
            "reduce_on_plateau.metric",
            # The name contains that of the cosine similarity, which is maximised.
            ("reduce_on_plateau={metric: val_cost}",),
            "'val_cost' is better is not known: write mode",
        ),
        ("class_weights.2", ("class_weights={'0': 1, '2': 2}",), "no class '2'"),
        ("sample_weight", ("sample_weight=big_tip",), "'big_tip' is the label"),
        ("sample_weight", ("sample_weight=payment_type",), "is no number"),
        ("sample_weight", ("sample_weight=history",), "have exactly one value"),
        ("input.augment", ("input.augment.rotate=5",), "no image to augment"),
    ],
)
def test_what_is_refused(refused, key, overrides, says):
    message = refused("train.batch_size=null", *(f"train.{text}" for text in overrides))
    assert says in message
    assert f"train.{key}" in message
    assert "problems" not in message


def test_the_sample_weight_is_no_input_unless_it_is_listed(validate):
    feature_set = validate("train.sample_weight=seconds").config.feature_set
    assert feature_set.sample_weight == "seconds"
    assert "seconds" not in feature_set.features
    text = json.dumps(feature_set.model_dump())
    assert type(feature_set).model_validate_json(text) == feature_set


def test_gray_images_are_augmented_but_in_colour(validate, refused):
    validate(PHOTO, "train.input.augment.rotate=5")
    message = refused(PHOTO, "train.input.augment.saturation=0.5")
    assert "gray images have no saturation" in message


def test_a_warm_start_names_a_model(validate, refused, project):
    for source in ("served", "latest_blessed", "latest"):
        assert validate(f"train.warm_start={source}").config.warm_start_path is None
    message = refused("train.warm_start=servd")
    assert "there is no model 'servd'" in message
    assert "did you mean 'served'?" in message
    weights = project / "model.weights.h5"
    weights.touch()
    found = validate("train.warm_start=model.weights.h5").config.warm_start_path
    assert found == weights
    (project / "model" / "assets").mkdir(parents=True)
    assert f"at {project / 'model'}" in refused("train.warm_start=model")
    (project / "model" / "saved_model.pb").touch()
    assert validate("train.warm_start=model").config.warm_start_path
