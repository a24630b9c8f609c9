"""Keys of the section train that depend on each other."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.unit

TWO, SERVERS = "train.processes=2", "train.strategy=parameter_server"


@pytest.mark.parametrize(
    "overlays",
    [
        [TWO],
        [TWO, "train.strategy=multi_worker"],
        [TWO, SERVERS, "train.parameter_servers=1"],
        # Workers of parameter servers have no part in a batch.
        [TWO, SERVERS, "train.parameter_servers=1", "train.batch_size=33"],
        [TWO, "train.batch_per_replica=33"],
        # In a cluster of its own, TF_CONFIG says how many there are.
        [SERVERS],
    ],
)
def test_processes_have_a_strategy_for_them(validate, overlays):
    validate(*overlays)


@pytest.mark.parametrize("strategy", ["mirrored", "tpu", "one_device"])
def test_other_strategies_have_one_process(refused, strategy):
    message = refused(TWO, f"train.strategy={strategy}")

    assert f"the strategy {strategy} trains in one process" in message
    assert "train.processes" in message


@pytest.mark.parametrize(
    "overlays",
    [
        ["train.parameter_servers=1"],
        ["train.parameter_servers=1", SERVERS],
        ["train.parameter_servers=1", TWO],
    ],
)
def test_parameter_servers_have_a_strategy_and_workers(refused, overlays):
    message = refused(*overlays)

    assert "parameter servers need train.strategy" in message


def test_a_strategy_of_parameter_servers_has_one(refused):
    assert "needs train.parameter_servers" in refused(TWO, SERVERS)


def test_epochs_have_a_limit(refused):
    assert "train.epochs" in refused("train.epochs=1" + "0" * 30)


def test_processes_exclude_replicas(refused):
    assert "exclude each other" in refused(TWO, "train.replicas=2")


def test_the_batch_is_divided_over_the_processes(refused):
    message = refused("train.processes=3", "train.batch_size=128")

    assert "128 is not a multiple of 3; try train.batch_size=126" in message


@pytest.mark.parametrize(
    "overrides",
    [
        ("batch_size=64", "replicas=4"),
        ("batch_per_replica=24", "strategy=tpu"),
        ("batch_per_replica=3", "replicas=4", "strategy=mirrored"),
        ("strategy=central_storage", "precision=mixed_bfloat16"),
        ("devices.memory_growth=true",),
        ("devices.memory_limit_mb=100", "devices.logical=2"),
    ],
)
def test_strategies_that_fit_together(validate, overrides):
    validate("train.batch_size=null", *(f"train.{text}" for text in overrides))


@pytest.mark.parametrize(
    ("key", "overrides", "says"),
    [
        ("batch_per_replica", ("batch_per_replica=8", "batch_size=8"), "given twice"),
        ("replicas", ("replicas=2", "strategy=tpu"), "takes no number of replicas"),
        ("batch_size", ("replicas=3", "batch_size=64"), "a multiple of 3"),
        (
            "batch_size",
            ("strategy=tpu", "batch_size=100"),
            "100 is not a mult",
        ),
        (
            "batch_per_replica",
            ("strategy=tpu", "batch_per_replica=4"),
            "4 is not a mult",
        ),
        (
            "precision",
            ("strategy=central_storage", "precision=mixed_float16"),
            "Keras cannot scale the loss",
        ),
        (
            "devices.memory_growth",
            ("devices.memory_growth=true", "devices.memory_limit_mb=9"),
            "cannot both grow and be limited",
        ),
        ("devices.logical", ("devices.logical=2", "replicas=2"), "given twice"),
    ],
)
def test_strategies_that_exclude_each_other(refused, key, overrides, says):
    message = refused("train.batch_size=null", *(f"train.{text}" for text in overrides))

    assert says in message
    assert f"train.{key}" in message


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


def test_layers_are_unfrozen_before_the_last_epoch(validate, refused):
    fine_tune = "train.fine_tune={{freeze: [backbone], unfreeze_after: {}}}"
    validate(fine_tune.format(6))
    message = refused(fine_tune.format(7))
    assert "no epoch is left after the layers are unfrozen" in message
    assert "train.epochs is 7" in message
    assert "freeze" in refused("train.fine_tune={unfreeze_after: 2}")
    assert "at least one" in refused("train.fine_tune={freeze: []}")
    message = refused("train.fine_tune={freeze: [a], learning_rate: 0.1}")
    assert "unfreezing, which never happens" in message
