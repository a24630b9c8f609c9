"""How the values of a search get into the graph."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runners.cloud.task_settings import tasks_of
from tests.pipeline.graph.compiled import (
    cloud_job,
    compile_locally,
    config_of,
    properties_of,
)

pytestmark = pytest.mark.tf

SPACE = (
    "tune.space={train.batch_size: [64, 32], model_params.dropout: [0.1, 0.2], "
    "train.optimizer.class: [Adam, SGD]}"
)


def test_the_trainer_reads_what_the_tuner_finds_here_and_in_a_service(
    project, tmp_path
):
    config = config_of(project, "digits", overrides=[SPACE])
    nodes = compile_locally(config, tmp_path)
    (channel,) = nodes["Trainer"].inputs.inputs["hyperparameters"].channels
    assert channel.producer_node_query.id == "Tuner"
    assert "DataGate" in nodes["Tuner"].upstream_nodes
    trainer = tasks_of(cloud_job(config)["pipelineSpec"])["Trainer"]["inputs"]
    found = trainer["artifacts"]["hyperparameters"]
    assert found["taskOutputArtifact"]["producerTask"] == "Tuner"


def test_only_what_a_trial_depends_on_is_in_the_key_of_the_search(project, tmp_path):
    def given(*overrides: str) -> Any:
        config = config_of(project, "digits", overrides=[SPACE, *overrides])
        nodes = compile_locally(config, tmp_path)
        return json.loads(properties_of(nodes)["Tuner"]["custom_config"])

    first = given()
    assert given("train.batch_size=16", "model_params={dropout: 0.7}") == first
    assert given("train.optimizer={class: SGD, params: {momentum: 0.9}}") == first
    assert given("train.learning_rate=0.5") != first
    assert given("model_params={dense_units: 8}") != first
    assert given("tune.trials=3") != first
