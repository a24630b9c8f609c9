"""What Prometheus reads of a server."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

LATENCY = Histogram(
    "sluice_serving_latency_seconds",
    "From the first byte of a request to its answer, by the code of that.",
    ("model", "method", "interface", "code"),
    buckets=[0.0005 * 2**power for power in range(16)],
)
BATCH_ROWS = Histogram(
    "sluice_serving_batch_rows",
    "Rows that were computed at once.",
    ("model",),
    buckets=[2**power for power in range(11)],
)
VERSION = Gauge("sluice_serving_version", "The version that is served.", ("model",))
UNRECORDED = Counter(
    "sluice_serving_unrecorded",
    "Requests of the sample that came faster than they could be recorded.",
    ("model",),
)
