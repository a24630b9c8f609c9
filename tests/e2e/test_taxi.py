"""The taxi pipeline: a table with missing values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.config.load import load_config
from serving.local_store import LocalModelStore
from serving.store_owner import Owner, read_owner
from sluice.storage import digest
from sluice.tfrecords import tfrecord
from sluice.workspace import locate

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]


@pytest.fixture(scope="module")
def record(project: Path, run_config):
    return run_config(load_config("taxi", cwd=project), locate(project, "taxi"))


def test_metrics_reach_their_targets(record):
    assert (record.status, record.pushes[0].state) == ("succeeded", "pushed")
    rows = {(row.check, row.slice): row for row in record.gate_rows("model")}
    overall = rows["auc", "overall"]
    card = rows["auc", "payment_type: Credit Card"]
    assert (overall.limit, card.limit) == (0.935, 0.58)
    assert overall.actual >= 0.935
    assert card.actual >= 0.58


def test_tfx_components_run_beside_ours(record, tmp_path):
    """TFX's BulkInferrer and Pusher read our blessings."""
    from tfx import components as stock
    from tfx.dsl.components.common.importer import Importer
    from tfx.orchestration import metadata
    from tfx.orchestration.pipeline import Pipeline
    from tfx.proto import bulk_inferrer_pb2, pusher_pb2
    from tfx.types import standard_artifacts

    from components.model_verdict.component import ModelVerdict
    from components.model_verdict.settings import Settings, Threshold
    from components.pusher.component import Pusher
    from runners.local import LocalRunner

    nodes: list[Any] = []

    def imported(kind: str, uri: str | Path, **properties: dict) -> Any:
        importer = Importer(
            source_uri=str(uri),
            artifact_type=getattr(standard_artifacts, kind),
            **properties,
        )
        nodes.append(importer.with_id(f"{kind}{len(nodes)}"))
        return importer.outputs["result"]

    def destination(name: str) -> Any:
        return pusher_pb2.PushDestination(
            filesystem=pusher_pb2.PushDestination.Filesystem(
                base_directory=str(tmp_path / name)
            )
        )

    def made(node: str, key: str) -> str:
        (uri,) = record.node(node).outputs[key]
        return uri

    def infra_blessing(blessed: int) -> Any:
        blessing = {"blessed": blessed, "has_model": 1}
        found = made("ServingCheck", "blessing")
        return imported("InfraBlessing", found, custom_properties=blessing)

    model = imported("Model", made("Trainer", "model"))
    examples = imported(
        "Examples",
        made("TFRecordGen", "examples"),
        properties={"split_names": '["train", "eval", "test"]'},
    )
    verdict = ModelVerdict(
        evaluation=imported("ModelEvaluation", made("Evaluator", "evaluation")),
        model=model,
        settings=Settings(
            thresholds=(Threshold(metric="auc", lower_bound=0.5),),
            classes=("0", "1"),
            split="test",
        ),
    )
    blessed = {"model": model, "model_blessing": verdict.outputs["blessing"]}
    infer = stock.BulkInferrer(
        **blessed,
        examples=examples,
        data_spec=bulk_inferrer_pb2.DataSpec(example_splits=["test"]),
    )
    checked = infra_blessing(1)
    nodes += [
        verdict,
        infer,
        # With a model it would push that, without the warm-up requests.
        stock.Pusher(
            model_blessing=verdict.outputs["blessing"],
            infra_blessing=checked,
            push_destination=destination("theirs"),
        ),
        Pusher(
            **blessed,
            infra_blessing=checked,
            push_destination=destination("ours"),
        ).with_id("Ours"),
        Pusher(
            **blessed,
            infra_blessing=infra_blessing(0),
            push_destination=destination("refused"),
        ).with_id("Refused"),
    ]
    database = str(tmp_path / "metadata.db")
    pipeline = Pipeline(
        pipeline_name="beside",
        pipeline_root=str(tmp_path / "root"),
        metadata_connection_config=metadata.sqlite_metadata_connection_config(database),
        components=nodes,
    )

    result = LocalRunner(workers=2).run(pipeline, run_id="one")

    blocked = [node.id for node in result.nodes if node.state != "ran"]
    assert blocked == ["Refused"] and result.node("Refused").state == "blocked"
    (ours,) = LocalModelStore(tmp_path / "ours").versions()
    (theirs,) = (tmp_path / "theirs").iterdir()
    assert digest.of_tree(theirs) == ours.digest == digest.of_tree(record.pushes[0].uri)
    assert read_owner(tmp_path / "ours" / ".versions" / "owner.json") == Owner("beside")
    assert not (tmp_path / "refused").exists()
    shards = (tmp_path / "root" / "BulkInferrer").rglob("prediction_logs-*.gz")
    predicted = sum(1 for shard in shards for _ in tfrecord.read(shard))
    examples_dir = Path(made("TFRecordGen", "examples"), "Split-test")
    given = sum(1 for shard in examples_dir.iterdir() for _ in tfrecord.read(shard))
    assert predicted == given > 0
