"""Draws the part of the graph from the records to the data gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfx.components import ExampleValidator, StatisticsGen
from tfx.components.schema_gen.import_schema_gen.component import ImportSchemaGen
from tfx.orchestration.data_types import RuntimeParameter

from components.accept_data.component import AcceptData
from components.data_gate.component import DataGate
from components.data_verdict.component import DataVerdict
from components.data_verdict.policy import Policy, Rule
from components.tfrecord_gen.checking.hash_splits import HashSplits
from components.tfrecord_gen.checking.image_check import ImageCheck
from components.tfrecord_gen.component import TFRecordGen
from components.tfrecord_gen.spans.span_pattern import SpanPattern
from pipeline.config.config import Config
from pipeline.config.features import Image
from pipeline.graph.choose_spans import complete_when
from pipeline.graph.graph_context import GraphContext
from pipeline.graph.stored_inputs import store_input
from sluice.splits import SERVING

_VALIDATION = ["tfx", "tensorflow-data-validation"]


@dataclass(frozen=True)
class DataNodes:
    """What the rest of the graph is drawn on.

    Attributes:
      tfrecord_gen: the records.
      schema_gen: the reviewed schema.
      data_gate: what must have passed before anything is made of the records.
      others: the nodes between them, and after the gate.
    """

    tfrecord_gen: Any
    schema_gen: Any
    data_gate: Any
    others: tuple[Any, ...]

    @property
    def nodes(self) -> list[Any]:
        """All of them."""
        return [self.tfrecord_gen, self.schema_gen, *self.others, self.data_gate]


def draw_data(context: GraphContext) -> DataNodes:
    """Returns the nodes that take the records in, measure and judge them."""
    config, baseline_store = context.config, context.locations.baseline_store
    tfrecord_gen = _ingest(context, config.data.patterns, hash_splits_of(config))
    statistics_gen = _measure(context, tfrecord_gen)
    schema_gen = ImportSchemaGen(
        schema_file=str(
            store_input(config.schema_path, context.locations.inputs_dir, "schema")
        )
    )
    example_validator = ExampleValidator(
        statistics=statistics_gen.outputs["statistics"],
        schema=schema_gen.outputs["schema"],
    )
    serving = _serving(context)
    sent, measured = serving or (None, None)
    data_verdict = DataVerdict(
        statistics=statistics_gen.outputs["statistics"],
        anomalies=example_validator.outputs["anomalies"],
        schema=schema_gen.outputs["schema"],
        quarantine=tfrecord_gen.outputs["quarantine"],
        serving_statistics=measured.outputs["statistics"] if measured else None,
        serving_quarantine=sent.outputs["quarantine"] if sent else None,
        splits=context.splits,
        policy=policy_of(config),
        baseline_store=baseline_store,
        sensitive=config.sensitive,
        hash_splits=hash_splits_of(config),
        override=context.accept_data,
    )
    data_gate = DataGate(verdict=data_verdict.outputs["verdict"])
    accept_data = AcceptData(
        statistics=statistics_gen.outputs["statistics"],
        quarantine=tfrecord_gen.outputs["quarantine"],
        verdict=data_verdict.outputs["verdict"],
        splits=context.splits,
        baseline_store=baseline_store,
    )
    accept_data.add_upstream_node(data_gate)
    return DataNodes(
        tfrecord_gen=tfrecord_gen,
        schema_gen=context.stamp(schema_gen, ["tfx"]),
        data_gate=context.stamp(data_gate, ["tfx"], ["components.data_gate.executor"]),
        others=(
            statistics_gen,
            *serving,
            context.stamp(example_validator, _VALIDATION),
            context.stamp(
                data_verdict,
                _VALIDATION,
                ["components.data_verdict.executor", "components.data_verdict.driver"],
            ),
            context.stamp(accept_data, ["tfx"], ["components.accept_data.executor"]),
        ),
    )


def _ingest(
    context: GraphContext, patterns: dict[str | None, str], hashed: HashSplits | None
) -> Any:
    config = context.config
    images = image_checks_of(config)
    node = TFRecordGen(
        input_base=config.data_uri,
        patterns=patterns,
        hash_splits=hashed,
        images=images,
        max_record_bytes=config.examples.max_record_bytes,
        window=config.examples.window,
        complete_when=complete_when(config),
        spans=_spans(context, patterns),
    )
    if SERVING in patterns:
        node = node.with_id("ServingTFRecordGen")
    code = ["components.tfrecord_gen.executor", "components.tfrecord_gen.driver"]
    return context.stamp(node, ["tfx", "tensorflow"] if images else ["tfx"], code)


def _spans(
    context: GraphContext, patterns: dict[str | None, str]
) -> str | RuntimeParameter:
    """Returns what pins the spans: the node's driver, or who submits to a service."""
    has_spans = any(SpanPattern.parse(item).placeholders for item in patterns.values())
    if not (has_spans and context.locations.is_service):
        return ""
    name = "serving_spans" if SERVING in patterns else "spans"
    return RuntimeParameter(name=name, ptype=str, default="")


def _measure(context: GraphContext, tfrecord_gen: Any) -> Any:
    node = StatisticsGen(examples=tfrecord_gen.outputs["examples"])
    if tfrecord_gen.id != "TFRecordGen":
        node = node.with_id("ServingStatisticsGen")
    return context.stamp(node, _VALIDATION)


def _serving(context: GraphContext) -> tuple[Any, Any] | tuple[()]:
    """Returns the nodes that ingest and measure serving requests, if any."""
    pattern = context.config.data.serving
    if pattern is None:
        return ()
    tfrecord_gen = _ingest(context, {SERVING: pattern}, None)
    return tfrecord_gen, _measure(context, tfrecord_gen)


def hash_splits_of(config: Config) -> HashSplits | None:
    """Returns how records are divided, in the form in which the nodes take it."""
    given = config.data.hash_splits
    return None if given is None else HashSplits(given.buckets, given.by)


def image_checks_of(config: Config) -> list[ImageCheck]:
    """Returns what every image must be; nothing where images are not looked into."""
    limits = config.examples.images
    if limits is None:
        return []
    return [
        ImageCheck(
            feature=name,
            is_sensitive=name in config.sensitive,
            decoded_channels=spec.channels,
            **limits.model_dump(),
        )
        for name, spec in (config.features or {}).items()
        if isinstance(spec, Image)
    ]


def policy_of(config: Config) -> Policy:
    """Returns what the data gate lets pass, in the form in which the node takes it."""
    given = config.validate_data
    return Policy(
        default=given.default,
        rules=tuple(
            Rule(rule.action, rule.feature, rule.anomaly) for rule in given.rules
        ),
        min_examples={str(key): count for key, count in given.min_examples.items()},
        max_examples={str(key): count for key, count in given.max_examples.items()},
        max_count_change=given.max_count_change,
        max_corrupt_fraction=config.examples.max_corrupt_fraction,
    )
