"""A blessing that Vertex AI's resolver of the latest blessed model finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components.model_verdict.threshold import Settings

pytestmark = pytest.mark.tf

STORE = "projects/1/locations/r/metadataStores/default/artifacts"
EXECUTOR = "components.model_verdict.executor.Executor"


def _listed(name: str, uri: Path, title: str) -> dict[str, Any]:
    kind = {"instanceSchema": f"title: {title}\ntype: object\n"}
    one = {"name": f"{STORE}/{name}", "uri": str(uri), "type": kind}
    return {"artifacts": [one]}


def test_the_blessing_has_the_models_resource_names(evaluations, tmp_path):
    """Found: a hashed number, so that round two said "no baseline yet".

    The resolver's filter is name="<current_model_id of the blessing>".
    """
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor

    place = evaluations(tmp_path / "place", 2)
    examples = place.write_examples("data", [{"x": 1.0, "region": b"n", "label": 1}])
    models = [place.write_model(name, slope) for name, slope in [("a", 1), ("b", 2)]]
    evaluation = place.evaluate(examples, *models)
    for name in ("verdict", "blessing"):
        (tmp_path / name).mkdir()
    settings = Settings(classes=tuple(place.class_names), split="test")
    invocation = {
        "inputs": {
            "artifacts": {
                "evaluation": _listed("evaluation", evaluation, "tfx.ModelEvaluation"),
                "model": _listed("candidate", models[0], "tfx.Model"),
                "baseline_model": _listed("blessed", models[1], "tfx.Model"),
            },
            "parameterValues": {"settings": settings.model_dump_json()},
        },
        "outputs": {
            "artifacts": {
                "verdict": _listed(
                    "1", tmp_path / "verdict", "components.ModelVerdict"
                ),
                "blessing": _listed("2", tmp_path / "blessing", "tfx.ModelBlessing"),
            },
            "outputFile": str(tmp_path / "output.json"),
        },
    }
    spec = {"parameters": {"settings": {"parameterType": "STRING"}}}
    arguments = [
        "--executor_class_path",
        EXECUTOR,
        "--json_serialized_invocation_args",
        json.dumps(invocation),
        "--json_serialized_inputs_spec_args",
        json.dumps(spec),
    ]
    kubeflow_v2_run_executor.main(kubeflow_v2_run_executor._parse_flags(arguments))
    output = json.loads((tmp_path / "output.json").read_text())
    (blessing,) = output["artifacts"]["blessing"]["artifacts"]
    assert blessing["metadata"]["blessed"] == 1
    assert blessing["metadata"]["current_model_id"] == f"{STORE}/candidate"
    assert blessing["metadata"]["baseline_model_id"] == f"{STORE}/blessed"
