"""The names of before, until every caller chooses once (``choose_spans``)."""

from __future__ import annotations

from components.tfrecord_gen.spans.window import Window
from pipeline.config.config import Config
from pipeline.graph.choose_spans import choose_data as check_inputs
from pipeline.graph.choose_spans import choose_spans

__all__ = ["check_inputs", "serving_inputs"]


def serving_inputs(config: Config) -> Window | None:
    """Returns the files of serving requests; None where the config has none."""
    return choose_spans(config).serving
