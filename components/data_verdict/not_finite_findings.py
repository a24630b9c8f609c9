"""NaN and infinities, which are anomalies wherever the schema does not allow them.

TFDV reports them only where a ``float_domain`` says ``disallow_nan: true`` or
``disallow_inf: true``. One NaN turns a feature's mean and all of its z-scores into NaN,
so here silence forbids them; ``disallow_nan: false``, written out, allows them.
"""

from __future__ import annotations

from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

from components.data_verdict.finding import Finding
from components.data_verdict.schema_findings import features_of
from schemas.features import live_features


def not_finite_findings(
    split: str,
    statistics: statistics_pb2.DatasetFeatureStatisticsList | None,
    schema: schema_pb2.Schema,
) -> list[Finding]:
    """Returns one finding for each feature of the schema with NaN or infinities.

    Numbers of NaN are counted in the statistics; of infinities these only tell that
    there are some.
    """
    declared = {feature.name: feature for feature in live_features(schema)}
    found = []
    for feature in features_of(statistics):
        name = ".".join(feature.path.step)
        if feature.WhichOneof("stats") != "num_stats" or name not in declared:
            continue
        seen = _seen(feature.num_stats, declared[name].float_domain)
        if seen:
            finding = Finding(
                kind="not_finite",
                split=split,
                check=f"feature {name!r}",
                why=f"holds {' and '.join(seen)}",
                feature=name,
                limit="finite numbers",
                actual=" and ".join(seen),
            )
            found.append(finding)
    return found


def _seen(
    numbers: statistics_pb2.NumericStatistics, domain: schema_pb2.FloatDomain
) -> list[str]:
    seen = []
    nan = max((histogram.num_nan for histogram in numbers.histograms), default=0)
    if nan and _forbidden(domain, "disallow_nan"):
        seen.append(f"{nan} NaN")
    if _forbidden(domain, "disallow_inf"):
        bounds = {numbers.min, numbers.max}
        seen += [text for text in ("-inf", "inf") if float(text) in bounds]
    return seen


def _forbidden(domain: schema_pb2.FloatDomain, key: str) -> bool:
    return not domain.HasField(key) or getattr(domain, key)
