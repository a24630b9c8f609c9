"""Values of a job's runtime parameters: what changes from run to run."""

from __future__ import annotations

from collections.abc import Iterable

from components.tfrecord_gen.spans.span_choice import SpanChoice
from components.tfrecord_gen.spans.span_pattern import SpanPattern
from pipeline.config.config import Config
from pipeline.graph.node_registry import INGESTION, SERVING_INGESTION

SPANS_OF = {INGESTION: "spans", SERVING_INGESTION: "serving_spans"}
ACCEPT_DATA, TRAINER_CONFIG = "accept_data", "trainer_config"


def run_parameters(
    config: Config, choice: SpanChoice, accept_data: str | None = None
) -> dict[str, str]:
    """Returns the parameters of a job that is submitted, those with a default left out.

    Args:
      config: the pipeline's.
      choice: its spans, to which the run is pinned. Sizes and times of their files are
        part of the value, and so of the cache key.
      accept_data: the reason for overriding the data gate once.
    """
    serving = config.data.serving
    found = {}
    if has_spans(config.data.patterns.values()):
        found[SPANS_OF[INGESTION]] = choice.data.pinned_json()
    if choice.serving is not None and serving is not None and has_spans([serving]):
        found[SPANS_OF[SERVING_INGESTION]] = choice.serving.pinned_json()
    if accept_data:
        found[ACCEPT_DATA] = accept_data
    return found


def has_spans(patterns: Iterable[str]) -> bool:
    """Whether file patterns have placeholders, so that there are spans to choose."""
    return any(SpanPattern.parse(pattern).placeholders for pattern in patterns)
