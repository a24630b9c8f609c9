"""The data gate's policy, on plain protos: no anomaly, and no empty split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2

from sluice.verdict import Check, Verdict


def judge(
    splits: Sequence[str],
    statistics: Mapping[str, statistics_pb2.DatasetFeatureStatisticsList | None],
    anomalies: Mapping[str, anomalies_pb2.Anomalies | None],
) -> Verdict:
    """Returns the verdict over every split: any anomaly or empty split fails.

    Args:
      splits: the splits that the pipeline declares, in order.
      statistics: per split, what StatisticsGen wrote.
      anomalies: per split, what ExampleValidator wrote.
    """
    rows: list[Check] = []
    for split in splits:
        count = number_of_examples(statistics.get(split))
        rows.append(
            Check(
                check="number of examples",
                slice=split,
                limit=">= 1",
                baseline=None,
                actual=count,
                passed=count > 0,
                why="" if count else f"the split {split!r} holds no examples",
            )
        )
        # An empty split is one failure, not one per feature that is missing from it.
        rows += _anomaly_rows(split, anomalies.get(split)) if count else []
    return Verdict("data", tuple(rows))


def number_of_examples(
    statistics: statistics_pb2.DatasetFeatureStatisticsList | None,
) -> int:
    """Returns how many examples the statistics were computed from."""
    datasets = statistics.datasets if statistics is not None else ()
    return sum(int(dataset.num_examples) for dataset in datasets)


def _anomaly_rows(split: str, anomalies: anomalies_pb2.Anomalies | None) -> list[Check]:
    check = "anomalies against the schema"
    if anomalies is None:
        why = "ExampleValidator has left no report on this split"
        return [Check(check, split, "none", None, None, False, why)]
    rows = [
        Check(
            check=f"feature {name!r}",
            slice=split,
            limit=info.short_description or "as in the schema",
            baseline=None,
            actual="anomaly",
            passed=False,
            why=info.description,
        )
        for name, info in sorted(anomalies.anomaly_info.items())
    ]
    if anomalies.HasField("dataset_anomaly_info"):
        info = anomalies.dataset_anomaly_info
        rows.append(
            Check(
                check="whole data set",
                slice=split,
                limit=info.short_description,
                baseline=None,
                actual="anomaly",
                passed=False,
                why=info.description,
            )
        )
    if anomalies.data_missing:
        rows.append(
            Check("data", split, "present", None, "missing", False, "no data was read")
        )
    return rows or [Check(check, split, "none", None, 0, True)]
