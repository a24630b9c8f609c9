"""TFX's own example pipelines, unmodified, run by ``LocalRunner``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from sluice.record.parts import NodeRecord
from sluice.record.run_record import RunRecord
from sluice.tfrecords import tfrecord

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

PENGUIN = (
    "species",
    "culmen_length_mm",
    "culmen_depth_mm",
    "flipper_length_mm",
    "body_mass_g",
)


def _run(pipeline: Any) -> dict[str, NodeRecord]:
    from runners.local import LocalRunner

    result = LocalRunner(workers=2).run(pipeline)
    return {node.id: node for node in result.nodes}


def _write_penguins(path: Path) -> int:
    """Writes the penguins of TFX's tests as the CSV that the example reads."""
    import tensorflow as tf
    import tfx.components

    data = Path(tfx.components.__file__).parent / "testdata" / "penguin" / "data"
    rows = []
    for shard in sorted(data.glob("Split-*/*.gz")):
        for record in tfrecord.read(shard):
            features = tf.train.Example.FromString(record).features.feature
            species = features[PENGUIN[0]].int64_list.value
            rest = (features[name].float_list.value for name in PENGUIN[1:])
            rows.append([value for values in (species, *rest) for value in values])
    path.parent.mkdir(parents=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([PENGUIN, *rows])
    return len(rows)


@pytest.fixture(scope="module")
def penguin(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, dict[str, NodeRecord]]:
    """Where TFX's penguin pipeline has run, and its nodes."""
    from tfx.examples.penguin import penguin_pipeline_local
    from tfx.proto import example_gen_pb2, range_config_pb2

    tmp_path = tmp_path_factory.mktemp("penguin")
    code = Path(penguin_pipeline_local.__file__).with_name("penguin_utils_keras.py")
    data = tmp_path / "data"
    assert _write_penguins(data / "labelled" / "day1" / "penguins.csv") == 334
    split = example_gen_pb2.Input.Split(name="input", pattern="day{SPAN}/*")
    pipeline = penguin_pipeline_local.create_pipeline(
        pipeline_name="penguin",
        pipeline_root=str(tmp_path / "root"),
        data_root=str(data),
        module_file=str(code),
        accuracy_threshold=0.6,
        serving_model_dir=str(tmp_path / "serving"),
        metadata_path=str(tmp_path / "metadata.db"),
        user_provided_schema_path=None,
        enable_tuning=False,
        enable_bulk_inferrer=False,
        enable_example_diff=False,
        examplegen_input_config=example_gen_pb2.Input(splits=[split]),
        examplegen_range_config_date=None,
        resolver_range_config=range_config_pb2.RangeConfig(
            rolling_range=range_config_pb2.RollingRange(num_spans=2)
        ),
        beam_pipeline_args=[],
        enable_transform_input_cache=True,
    )
    return tmp_path, _run(pipeline)


def test_penguin_with_a_rolling_window(penguin):
    """In a first run there is no analyzer cache for Transform to read."""
    folder, nodes = penguin
    assert {node.state for node in nodes.values()} == {"ran"}
    reasons = {name: node.reason for name, node in nodes.items() if node.reason}
    assert reasons == {
        "transform_cache_resolver": "found nothing",
        "latest_blessed_model_resolver": "found nothing",
    }
    (version,) = (folder / "serving").iterdir()
    assert (version / "saved_model.pb").is_file()
    (run_dir,) = (folder / "runs").iterdir()
    record = RunRecord.load(run_dir)
    assert record.notes == []
    kinds = {item.kind for item in record.documents}
    assert {"statistics", "schema", "anomalies", "model", "metrics", "lineage"} <= kinds
