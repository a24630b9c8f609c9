"""Statistics without Beam are those of TFX's StatisticsGen."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from sample_data.tf_example import encode
from schemas.data_statistics import Statistics
from sluice.patches.tfdv import limit_quantiles
from sluice.splits import split_statistics_path
from sluice.tfrecords import tfrecord
from tests.components.conftest import artifact

pytestmark = pytest.mark.tf


def _record(source: random.Random) -> bytes:
    features: dict[str, Any] = {
        "fare": [source.lognormvariate(2, 1)],
        "count": [source.randrange(50)],
        "name": [f"name-{source.randrange(300)}".encode()],
        "many": [source.random() for _ in range(source.randrange(5))],
        "pixels": [source.randbytes(30)],
        # Most batches lack it.
        "absent": [1] if source.random() < 0.005 else None,
        "wrong": [float("nan")] if source.random() < 0.1 else [0.0],
    }
    return encode({name: value for name, value in features.items() if value})


def test_as_of_tfx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import tensorflow_data_validation as tfdv
    from tfx.components.util import examples_utils
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
    from tfx.proto import example_gen_pb2
    from tfx.types import artifact_utils, standard_artifacts
    from tfx_bsl.tfxio import dataset_options

    from components import statistics_gen
    from pipeline.graph.beam_arguments import LOCAL_BEAM_ARGS

    source, splits = random.Random(0), {"train": 3000, "eval": 40, "empty": 0}
    (examples,) = artifact(standard_artifacts.Examples, tmp_path / "examples")
    examples.split_names = artifact_utils.encode_split_names([*splits])
    examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
    examples_utils.set_file_format(examples, "tfrecords_gzip")
    for split, count in splits.items():
        folder = tmp_path / "examples" / f"Split-{split}"
        folder.mkdir(parents=True)
        for shard in range(2):
            records = [_record(source) for _ in range(count // 2)]
            tfrecord.write(folder / f"examples-{shard}.gz", records)
    options = tfdv.StatsOptions(num_quantiles_histogram_buckets=40)

    def computed(name: str) -> dict[str, Any]:
        (statistics,) = artifact(standard_artifacts.ExampleStatistics, tmp_path / name)
        context = BaseBeamExecutor.Context(
            beam_pipeline_args=[*LOCAL_BEAM_ARGS], tmp_dir=str(tmp_path), unique_id="1"
        )
        statistics_gen.Executor(context).Do(
            {"examples": [examples]},
            {"statistics": [statistics]},
            {"stats_options_json": options.to_json(), "exclude_splits": "[]"},
        )
        assert statistics.split_names == examples.split_names
        found = {}
        for split in splits:
            path = Path(split_statistics_path(statistics.uri, split))
            (dataset,) = Statistics.FromString(path.read_bytes()).datasets
            features = {x.path.step[0]: MessageToDict(x) for x in dataset.features}
            for key in ("topValues", "rankHistogram"):
                # They are bytes and no text, which TFDV does not tell apart.
                features.get("pixels", {}).get("stringStats", {}).pop(key, None)
            found[split] = {"": dataset.num_examples, **features}
        return found

    small = dataset_options.RecordBatchesOptions(100, num_epochs=1, shuffle=False)
    monkeypatch.setattr(statistics_gen, "_BATCH", small)
    without = computed("without")
    assert len(without["train"]) == 8
    # TFX's own.
    monkeypatch.setattr(statistics_gen, "is_remote", lambda _: True)
    monkeypatch.delattr(statistics_gen.stats_impl, "extract_statistics_output")
    assert _rounded(computed("beam")) == _rounded(without)


def test_histograms_and_medians_are_those_of_the_values():
    """From 1,000 quantiles each count is within half a percent of all."""
    import numpy as np
    import pyarrow as pa
    import tensorflow_data_validation as tfdv
    from tensorflow_data_validation.statistics import stats_impl

    limit_quantiles(250)
    values = np.random.default_rng(0).lognormal(2, 0.5, 20_000)
    batch = pa.RecordBatch.from_pydict({"x": [[float(x)] for x in values]})
    options = tfdv.StatsOptions(num_quantiles_histogram_buckets=250)
    found = stats_impl.generate_statistics_in_memory(batch, options)
    numbers = found.datasets[0].features[0].num_stats
    assert numbers.median == pytest.approx(np.median(values), rel=5e-3)
    standard, quantiles = numbers.histograms
    counts = np.histogram(values, bins=10)[0]
    assert [x.sample_count for x in standard.buckets] == pytest.approx(counts, abs=100)
    assert len(quantiles.buckets) == 250
    bounds = [x.high_value for x in quantiles.buckets][:-1]
    exact = np.quantile(values, np.arange(1, 250) / 250)
    assert bounds == pytest.approx(exact, rel=2e-2)


def _rounded(value: Any) -> Any:
    """Rounds floats: the order in which they are added is not always the same."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value
