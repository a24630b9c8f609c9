"""What the config lays over the compiled spec; see also ``test_same_graph``."""

import json

import pytest

from components.tfrecord_gen.input_files import SourceFile, SpanChoice, Window
from runners.cloud.job_inputs import job_parameters
from sluice.errors import ConfigError
from tests.pipeline.graph.compiled import (
    by_id,
    cloud_config,
    cloud_job,
    config_of,
    parameters_of,
)

pytestmark = pytest.mark.tf

PLACE: dict = {"project": "my-project", "region": "europe-west4", "image": "i:1"}
SPANS = "data.splits={train: '{SPAN}/train-*', eval: '{SPAN}/eval-*'}"


def test_values_are_given_to_the_parameters_that_a_job_has(project, tmp_path):
    """Found: `spans` defaulted to "", a constant cache key."""
    config = config_of(project, "digits", overrides=["data.serving='sent-*'"])
    job, plain = cloud_job(config), cloud_job(config_of(project, "digits"))
    # What has no default must be given.
    without = {k for k, v in parameters_of(job).items() if "defaultValue" not in v}
    assert without == {"spans", "serving_spans"}
    files = (SourceFile("gs://b/7/a", "train", 7, generation="1"),)
    window = Window("gs://b", {"train": "{SPAN}/*"}, files)
    choice = SpanChoice(window, window)
    places = "gs://b/serving", str(tmp_path / "inputs")
    for one in (job, plain):
        # Its value is read from the bucket.
        parameters_of(one).pop("baseline")
    given = job_parameters(job, *places, choice, "known")
    assert set(given) == {"spans", "serving_spans", "accept_data"}
    assert SpanChoice.load(given["spans"]).data == window
    assert job_parameters(plain, *places, choice) == {"spans": given["spans"]}
    # Others have another name, and so another cache key.
    other = SpanChoice(Window("gs://b", window.patterns, ()))
    assert job_parameters(plain, *places, other)["spans"] != given["spans"]


def test_the_same_data_is_trained_on_again_after_a_change_of_the_training(project):
    def mark(*overrides, **cloud):
        config = config_of(project, "digits", overrides=[SPANS, *overrides])
        tasks = by_id(cloud_job(config, scheduled=True, **cloud))
        named = tasks["AdvanceWatermark"].parameters["watermark"]
        schedule = tasks["TFRecordGen"].parameters["schedule"]
        assert json.loads(schedule)["watermark"] == named
        return named

    before = mark()
    assert before.startswith("gs://bucket/root/digits/state/watermarks/")
    assert mark(image="other:1", labels={"a": "b"}) == before
    # Another training, so the same data is trained on once more.
    assert mark("train.epochs=3") != before


OWN = """
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.base.base_driver import BaseDriver
from tfx.types.artifact import Artifact
from tfx.types.standard_artifacts import Model

@component
def Read(model: InputArtifact[Model]):
    pass

class Driver(BaseDriver):
    pass

class Driven(Read):
    DRIVER_CLASS = Driver

class Nameless(Artifact):
    TYPE_NAME = "Nameless"

@component
def Write(made: OutputArtifact[Nameless]):
    pass
"""


@pytest.mark.parametrize(
    ("node", "says"),
    [
        (
            "{component: 'own_nodes:Driven', inputs: {model: Trainer.model}}",
            "does not run the driver of Own, own_nodes.Driver",
        ),
        ("{component: 'own_nodes:Write'}", "TFX cannot compile .*: .*'?Nameless'?"),
    ],
)
def test_a_node_that_the_service_cannot_run(project, monkeypatch, node, says):
    from runners.cloud.compile_job import compile_pipeline

    (project / "own_nodes.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(project))
    config = config_of(project, "digits", overrides=[f"nodes={{Own: {node}}}"])
    with pytest.raises(ConfigError, match=says):
        compile_pipeline(cloud_config(config))
