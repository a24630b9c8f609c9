"""Documents of TFX's protos, in protobuf's own JSON form.

Values of sensitive features are cleared from the protos before.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import json_format, text_format
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from sluice.splits import (
    BASELINE_DIR,
    BASELINE_ENTRY,
    SPLIT_PREFIX,
    over_all_examples,
    split_statistics_path,
)

MAX_SLICES = 5000
# Two rows of 100 numbers, which pages show of all examples; see
# components.counting_metrics.
_HISTOGRAM = "prediction_histogram"


def statistics(
    folder: Path, splits: Sequence[str], sensitive: Collection[str]
) -> dict[str, Any]:
    """Returns each split's ``DatasetFeatureStatistics`` of all examples."""
    by_split = {}
    for split in splits:
        data = Path(split_statistics_path(str(folder), split)).read_bytes()
        parsed = statistics_pb2.DatasetFeatureStatisticsList.FromString(data)
        overall = over_all_examples(parsed)
        for feature in overall.features if overall else ():
            if _name(feature) in sensitive:
                _keep_counts(feature)
            if kind := feature.WhichOneof("stats"):
                getattr(feature, kind).common_stats.ClearField("num_values_histogram")
            if kind == "string_stats":
                # Up to 1,000 values, of which the first are the top values too.
                feature.string_stats.ClearField("rank_histogram")
        by_split[split] = _json(overall or statistics_pb2.DatasetFeatureStatistics())
    return {"splits": by_split}


def baseline_statistics(folder: Path, sensitive: Collection[str]) -> Any:
    """Returns the data that a verdict on data compared with; None without any."""
    if not (folder / BASELINE_ENTRY).exists():
        return None
    entry = json.loads((folder / BASELINE_ENTRY).read_bytes())
    found = statistics(folder / BASELINE_DIR, list(entry["splits"]), sensitive)
    keys = ("name", "accepted_at", "run_id", "spans", "override")
    return {"baseline": {key: entry[key] for key in keys}, **found}


def _keep_counts(feature: statistics_pb2.FeatureNameStatistics) -> None:
    if kind := feature.WhichOneof("stats"):
        stats = getattr(feature, kind)
        kept = type(stats)(common_stats=stats.common_stats)
        if kind in ("string_stats", "bytes_stats"):
            kept.unique = stats.unique
        stats.CopyFrom(kept)
    feature.ClearField("custom_stats")


def _name(feature: Any) -> str:
    return ".".join(feature.path.step) or feature.name


def anomalies(
    folder: Path, splits: Sequence[str], sensitive: Collection[str]
) -> dict[str, Any]:
    """Returns each split's ``Anomalies``."""
    by_split = {}
    for split in splits:
        data = (folder / f"{SPLIT_PREFIX}{split}" / "SchemaDiff.pb").read_bytes()
        parsed = anomalies_pb2.Anomalies.FromString(data)
        parsed.ClearField("baseline")  # The whole schema, which has its own document.
        for name, info in parsed.anomaly_info.items():
            info.ClearField("diff_regions")
            if name in sensitive or ".".join(info.path.step) in sensitive:
                info.ClearField("description")
                for reason in info.reason:
                    reason.ClearField("description")
        by_split[split] = _json(parsed)
    return {"splits": by_split}


def schema(folder: Path, sensitive: Collection[str]) -> dict[str, Any]:
    """Returns the ``Schema``."""
    (path,) = folder.glob("*.pbtxt")
    parsed = text_format.Parse(path.read_text("utf-8"), schema_pb2.Schema())
    shared = set()
    for feature in parsed.feature:
        if feature.name in sensitive and (kind := feature.WhichOneof("domain_info")):
            shared.add(feature.domain)
            feature.ClearField(kind)
    for domain in parsed.string_domain:
        if domain.name in shared:
            domain.ClearField("value")
    return {"schema": _json(parsed)}


def metrics(folder: Path) -> dict[str, Any] | None:
    """Returns ``MetricsForSlice`` of each slice, and ``PlotsForSlice`` of all examples.

    None for what is not an evaluation of TFMA's.
    """
    import tensorflow_model_analysis as tfma

    slices = [*tfma.load_metrics(str(folder))]
    if not slices:
        return None
    slices.sort(key=lambda message: len(message.slice_key.single_slice_keys))
    described = [_json(message) for message in slices[:MAX_SLICES]]
    for message in described:
        if message["slice_key"]:
            values = message["metric_keys_and_values"]
            values[:] = [x for x in values if x["key"]["name"] != _HISTOGRAM]
    plots = [
        message
        for message in tfma.load_plots(str(folder))
        if not message.slice_key.single_slice_keys
        and not message.HasField("cross_slice_key")
    ]
    return {
        "metrics": described,
        "slices_left_out": max(0, len(slices) - MAX_SLICES),
        "plots": [_json(message) for message in plots],
    }


def _json(message: Any) -> dict[str, Any]:
    return json_format.MessageToDict(message, preserving_proto_field_name=True)
