"""What a rehearsal replaces in a config, and the notes about it."""

import pytest

from pipeline.config.load import load_config
from runners.operations.rehearse import _on_this_machine

pytestmark = pytest.mark.unit


def on_this_machine(**given):
    overrides = [f"{key.replace('__', '.')}={value}" for key, value in given.items()]
    config, notes = _on_this_machine(
        load_config("digits", profile="vertex", overrides=overrides)
    )
    assert len(notes) == len({note.partition(" not rehearsed")[0] for note in notes})
    return config, notes


@pytest.mark.parametrize("strategy", ["tpu", "multi_worker", "parameter_server"])
def test_strategy_of_other_machines_becomes_one_device(strategy):
    """Found: the Trainer failed late, since there is no TPU and are no workers."""
    config, (note,) = on_this_machine(train__strategy=strategy)
    assert f"train.strategy {strategy} is not rehearsed" in note
    assert config.train.strategy == "one_device"


def test_what_one_machine_has_stays():
    for given in ({"train__strategy": "mirrored"}, {"train__processes": 2}):
        config, notes = on_this_machine(**given)
        assert notes == [] and config.cloud.of_node("Trainer").memory_gb == 32


def test_what_only_the_service_has_is_replaced_with_a_note():
    tpu = "{topology: 2x2, runtime_version: 2.16.1}"
    config, notes = on_this_machine(
        train__precision="mixed_float16",
        cloud__nodes__Trainer=f"{{machine_type: ct5lp-hightpu-4t, tpu: {tpu}}}",
        cloud__beam__runner="dataflow",
        cloud__push__registry="{serving_image: some/image}",
    )
    assert len(notes) == 4
    assert config.train.precision == "float32"
    cloud = config.cloud
    assert not cloud.of_node("Trainer").needs_custom_job
    assert (cloud.beam.runner, cloud.push.registry) == ("direct", None)
