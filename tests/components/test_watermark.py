"""``AdvanceWatermark``, given an artifact as a service passes it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tf


def test_the_data_of_a_complete_run_is_recorded(tmp_path):
    from kfp.pipeline_spec import pipeline_spec_pb2
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_entrypoint_utils

    from components import watermark
    from components.watermark import Executor

    mark = str(tmp_path / "mark.json")
    given = pipeline_spec_pb2.ExecutorInput()
    artifact = given.inputs.artifacts["examples"].artifacts.add(name="1", uri="gs://x")
    artifact.type.instance_schema = "title: tfx.Examples\ntype: object\n"
    artifact.metadata.update({"data": "sha256:1"})
    inputs = kubeflow_v2_entrypoint_utils.parse_raw_artifact_dict(
        given.inputs.artifacts
    )
    assert watermark.read(mark) is None
    Executor().Do(inputs, {}, {"watermark": mark})
    assert watermark.read(mark) == "sha256:1"
