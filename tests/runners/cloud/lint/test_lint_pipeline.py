"""Findings in TFX pipelines, each of a component that TFX compiles or refuses."""

# No `from __future__ import annotations`: TFX reads the annotations as objects.

from typing import Any

import pytest
from tfx import v1 as tfx
from tfx.dsl.component.experimental import annotations
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.base import base_driver
from tfx.dsl.input_resolution.strategies import span_range_strategy
from tfx.types import artifact, standard_artifacts

from pipeline.config.load import load_config
from pipeline.config.validate import validate_config
from pipeline.graph.create_pipeline import create_pipeline
from runners.cloud.cloud_locations import cloud_locations
from runners.cloud.compile_job import compile_pipeline
from runners.cloud.lint.finding import Finding
from runners.cloud.lint.lint_config import lint_config
from runners.cloud.lint.lint_pipeline import lint_pipeline
from runners.cloud.lint.lint_spec import lint_spec
from runners.cloud.spec import read_spec

pytestmark = pytest.mark.tf


class Nameless(artifact.Artifact):
    """A type whose name the service does not take."""

    TYPE_NAME = "Nameless"


class Elsewhere(artifact.Artifact):
    """A type whose name is no import path."""

    TYPE_NAME = "nowhere.Elsewhere"


@component
def Train(
    model: annotations.OutputArtifact[standard_artifacts.Model],
    flag: annotations.Parameter[bool] = False,
) -> annotations.OutputDict(loss=float):  # type: ignore[valid-type]
    """Writes a model, and a value."""
    return {"loss": 1.0}


@component
def Push(
    model: annotations.InputArtifact[standard_artifacts.Model],
    limit: annotations.Parameter[float] = 0.0,
):
    """Reads a model."""


@component
def Listed(words: annotations.Parameter[list[str]]):
    """Has a list as parameter."""


@component
def WriteNameless(made: annotations.OutputArtifact[Nameless]):
    """Writes a type that the service does not take."""


@component
def WriteElsewhere(made: annotations.OutputArtifact[Elsewhere]):
    """Writes a type that cannot be imported by its name."""


class Driver(base_driver.BaseDriver):
    """A driver of its own."""


def _lint(*components: Any) -> list[Finding]:
    return lint_pipeline(
        tfx.dsl.Pipeline(
            pipeline_name="p", pipeline_root="gs://b/r", components=list(components)
        )
    )


def test_a_pipeline_without_faults() -> None:
    train = Train()
    assert _lint(train, Push(model=train.outputs["model"])) == []


def test_all_faults_at_once() -> None:
    train = Train()
    with tfx.dsl.Cond(train.outputs["loss"].future()[0].value < 1.0):
        push = Push(model=train.outputs["model"])
    validator = tfx.components.InfraValidator(
        model=train.outputs["model"],
        serving_spec={"tensorflow_serving": {"tags": ["latest"]}},
    )
    found = _lint(train, push, WriteNameless(), WriteElsewhere(), validator)
    assert sorted((item.where, item.what) for item in found) == [
        ("InfraValidator", "TFX has no InfraValidator for a service"),
        ("Push", "the service cannot evaluate its condition (artifact_value_op)"),
        (
            "WriteElsewhere, 'made'",
            "the artifact type 'nowhere.Elsewhere' is no import path, by which a "
            "container finds its class",
        ),
        ("WriteNameless", "the service takes no artifact type named 'Nameless'"),
    ]


def test_a_value_of_another_nodes_output() -> None:
    train = Train()
    push = Push(
        model=train.outputs["model"], limit=train.outputs["loss"].future()[0].value
    )
    [found] = _lint(train, push)
    assert found.where == "Push, parameter 'limit'"
    assert "compile a value of another node's output to a task that" in found.what


def test_parameters_that_arrive_otherwise() -> None:
    found = _lint(Train(flag=True), Listed(words=["a"]))
    assert sorted((item.severity, item.where, item.what) for item in found) == [
        (
            "error",
            "Listed, parameter 'words'",
            "a list reaches its executor as JSON text",
        ),
        (
            "warning",
            "Train, parameter 'flag'",
            "True and False reach its executor as 1 and 0",
        ),
    ]


def test_a_lookup_that_the_service_lacks() -> None:
    resolver = tfx.dsl.Resolver(
        strategy_class=span_range_strategy.SpanRangeStrategy,
        config={"range_config": tfx.proto.RangeConfig()},
        examples=tfx.dsl.Channel(type=standard_artifacts.Examples),
    ).with_id("Window")
    [found] = _lint(resolver)
    assert found.where == "Window"
    assert found.what.endswith("SpanRangeStrategy")
    assert found.what.startswith("the service has no lookup like")


def test_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    train = Train()
    monkeypatch.setattr(type(train), "DRIVER_CLASS", Driver)
    [found] = _lint(train)
    assert found.what == f"the service does not run its driver, {__name__}.Driver"


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("cifar10", "vertex-tpu"),
        ("digits", "vertex"),
        ("digits", "kubeflow"),
        ("fashion-mnist", "vertex-gpu"),
        ("flowers", "vertex"),
        ("mnist", "vertex-tpu"),
        ("taxi", "vertex-dataflow"),
        ("taxi", "kubeflow"),
    ],
)
def test_bundled_pipelines_and_profiles_have_no_findings(
    name: str, profile: str
) -> None:
    overrides = [
        "cloud.root=gs://bucket/root",
        "cloud.image=europe-west4-docker.pkg.dev/p/sluice/image",
        "cloud.project=p",
        "cloud.region=europe-west4",
        "data.dir=gs://bucket/data",
    ]
    if profile == "kubeflow":
        overrides.append("cloud.kubeflow={host: https://kfp.example}")
    loaded = load_config(name, profile=profile, overrides=overrides)
    config = validate_config(loaded).config
    assert lint_config(config) == []
    assert lint_pipeline(create_pipeline(config, cloud_locations(config))) == []
    for scheduled in (False, True):
        job, _ = compile_pipeline(config, scheduled=scheduled)
        assert lint_spec(read_spec(job), config) == []
