"""What a pipeline's YAML may say: names, types, bounds and defaults.

Frozen, and closed: an unknown key is an error. These models check each value by
itself; ``load_config`` reads and overlays the files, ``validate_config`` checks the
values against each other, the schema and the metrics that TFMA computes.
Paths stay as written, so what is fingerprinted or printed does not depend on the
machine; ``data_dir``, ``schema_path`` and ``serving_dir`` are absolute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    model_validator,
)

from pipeline.config.config_section import Section
from pipeline.config.config_types import (
    Channels,
    ClassList,
    Count,
    Destination,
    NotEmpty,
    Number,
    Params,
    PipelineName,
    Pixels,
    SliceSpec,
    Text,
    expect,
)
from pipeline.config.data_config import Data, Examples, Sensitive, Validate
from sluice.storage.destination import destination
from sluice.storage.uri import is_remote

CONFIG_VERSION = 1

KeyPath = tuple[str | int, ...]


def key_path(path: KeyPath) -> str:
    """Returns ``evaluate.thresholds[0].metric`` for its parts."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


@dataclass(frozen=True)
class Origin:
    """Where a config came from, so that a late error still names file and line.

    Attributes:
      root: the project root, absolute.
      file: the base config, as it is shown to the user.
      profile: the overlay's file, as it is shown, or None.
      overrides: the ``--set`` values in order, as given.
      places: for each key path, the file and line, or the ``--set``, that set it.
    """

    root: Path
    file: str
    profile: str | None = None
    overrides: tuple[str, ...] = ()
    places: dict[KeyPath, str] = field(default_factory=dict)

    def place(self, path: KeyPath) -> str:
        """Returns what set a key, or else the nearest mapping or list above it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, self.file)


class Label(Section):
    """What is predicted."""

    feature: Text = Field(description="The label's name in the schema.")
    classes: ClassList = Field(
        default=None,
        description="The label's values in the order of the model's outputs; of two, "
        "the second is the positive one. null: the values of its domain in the schema.",
    )


_KIND = "What the feature is turned into."


class Numeric(Section):
    """A number, as a z-score."""

    kind: Literal["numeric"] = Field(default="numeric", description=_KIND)


class Bucketized(Section):
    """A number, as the one of `buckets` quantiles that it falls into."""

    kind: Literal["bucketized"] = Field(default="bucketized", description=_KIND)
    buckets: Annotated[int, Field(strict=True, ge=2, le=10_000)] = Field(
        default=10, description="How many quantiles."
    )


class Vocabulary(Section):
    """A string or a whole number, as its place among those seen in training."""

    kind: Literal["vocabulary"] = Field(default="vocabulary", description=_KIND)
    top_k: Count | None = Field(
        default=None,
        description="How many of the most frequent values are kept. null: all.",
    )
    oov_buckets: Count = Field(
        default=1, description="How many buckets the other values are hashed into."
    )


class Hashed(Section):
    """A string or a whole number, as a hash; nothing is learned from the data."""

    kind: Literal["hashed"] = Field(default="hashed", description=_KIND)
    buckets: Annotated[int, Field(strict=True, ge=2)] = Field(
        default=64, description="How many hash buckets."
    )


class Image(Section):
    """An encoded image (PNG, JPEG), decoded and resized."""

    kind: Literal["image"] = Field(default="image", description=_KIND)
    height: Pixels = Field(description="Height after resizing, in pixels.")
    width: Pixels = Field(description="Width after resizing, in pixels.")
    channels: Channels = Field(description="1 for grey, 3 for RGB, 4 for RGBA.")


FeatureSpec = Annotated[
    Numeric | Bucketized | Vocabulary | Hashed | Image, Field(discriminator="kind")
]
FEATURE_KINDS = ("numeric", "bucketized", "vocabulary", "hashed", "image")


class EarlyStopping(Section):
    """When training stops before its last epoch."""

    patience: Count = Field(
        default=3,
        description="Stop after so many epochs without a better loss on `eval`.",
    )


class Train(Section):
    """How the model is trained."""

    epochs: Count = Field(
        default=10, description="Passes over the train split, at most."
    )
    batch_size: Count = Field(
        default=128,
        description="Examples per step over all replicas (the global batch size).",
    )
    learning_rate: Annotated[Number, Field(gt=0)] = Field(
        default=0.001, description="Learning rate of the optimizer."
    )
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**31)] = Field(
        default=17, description="Seed of shuffling, initial weights and dropout."
    )
    early_stopping: EarlyStopping | None = Field(
        default=None, description="When to stop early. null: train all epochs."
    )


class Metric(Section):
    """A metric that TFMA computes. `AUC` is short for `{class: AUC}`."""

    class_name: Annotated[Text, Field(alias="class")] = Field(
        description="A class of TFMA or of `tf_keras.metrics`."
    )
    name: Text | None = Field(
        default=None,
        description="What the result is called. null: the class's own name.",
    )
    params: Params = Field(default={}, description="Arguments of the class.")


def _metric(value: Any) -> Any:
    return {"class": value} if isinstance(value, str) else value


MetricSpec = Annotated[
    Metric, BeforeValidator(_metric, json_schema_input_type=Text | Metric)
]


class Change(Section):
    """How far a metric may move from the latest blessed model's, as TFMA has it.

    With `higher_is_better` a difference must be at least the limit; with
    `lower_is_better`, at most.
    """

    direction: Literal["higher_is_better", "lower_is_better"] = Field(
        description="Which way the metric is better."
    )
    absolute: Number | None = Field(
        default=None,
        description="Limit of candidate - baseline: -0.01 lets a metric that should be "
        "high fall by 0.01.",
    )
    relative: Number | None = Field(
        default=None, description="Limit of (candidate - baseline) / |baseline|."
    )

    @model_validator(mode="after")
    def _has_a_limit(self) -> Change:
        if self.absolute is None and self.relative is None:
            expect("given a limit: absolute, relative or both")
        return self


class Threshold(Section):
    """What a metric must reach before the model is pushed.

    It has at least one of `lower_bound`, `upper_bound` and `change`.
    """

    metric: Text = Field(
        description="The name of a result: of one of `evaluate.metrics`."
    )
    slice: SliceSpec = Field(
        default=None,
        description="`{feature: value}`, or `[feature]` for each of its values. null: "
        "all examples.",
    )
    lower_bound: Number | None = Field(
        default=None, description="Least value, in the metric's own unit, inclusive."
    )
    upper_bound: Number | None = Field(
        default=None, description="Greatest value, in the metric's own unit, inclusive."
    )
    change: Change | None = Field(
        default=None,
        description="Limit against the latest blessed model; not judged while there is "
        "none.",
    )
    min_examples_per_class: Count | None = Field(
        default=None,
        description="A slice with fewer examples of some class is not judged. null: "
        "every slice is.",
    )

    @model_validator(mode="after")
    def _has_a_limit(self) -> Threshold:
        low, high = self.lower_bound, self.upper_bound
        if low is None and high is None and self.change is None:
            expect("given a limit: lower_bound, upper_bound or change")
        if low is not None and high is not None and low > high:
            expect("given a lower_bound that is not above its upper_bound")
        return self


class Evaluate(Section):
    """What is measured, on which slices, and what gates the push."""

    metrics: NotEmpty[tuple[MetricSpec, ...]] = Field(
        description="What is measured: at least one metric."
    )
    slices: tuple[NotEmpty[tuple[Text, ...]], ...] = Field(
        default=(),
        description="Each a list of features, whose values are crossed; all examples "
        "together are always measured.",
    )
    thresholds: tuple[Threshold, ...] = Field(
        default=(),
        description="What must hold before the model is pushed: all of them.",
    )


class Push(Section):
    """Where the model goes."""

    serving_dir: Destination | None = Field(
        default=None,
        description="Relative to the project root, absolute, or below `~`; of one "
        "pipeline only. null: `serving/` in the workspace.",
    )


class Retry(Section):
    """Further attempts after failures that may pass by themselves, on local runs.

    Such as a service that does not answer or a connection that broke; never a gate,
    bad data or a bug.
    """

    default: Annotated[int, Field(strict=True, ge=0, le=20)] = Field(
        default=0, description="Further attempts of every node that is not named."
    )
    nodes: dict[Text, Annotated[int, Field(strict=True, ge=0, le=20)]] = Field(
        default={}, description="Further attempts by node, such as `{Trainer: 2}`."
    )
    backoff_s: Annotated[Number, Field(ge=0)] = Field(
        default=5.0,
        description="Seconds before the second attempt; doubled with each further.",
    )


class Memory(Section):
    """How much memory a node may use, on local runs.

    The limit applies to the sum over the node's processes; shared pages count once. A
    node that uses more is killed and has failed.
    """

    default: Count | None = Field(
        default=None,
        description="Of every node that is not named, in MB (1,000,000 bytes). null: "
        "what the machine has.",
    )
    nodes: dict[Text, Count | None] = Field(
        default={}, description="By node, such as `{Trainer: 8000}`."
    )


class Config(Section):
    """One pipeline."""

    version: Literal[1] = Field(description="Version of the config's format.")
    name: PipelineName = Field(
        description="Name of the pipeline, its workspace and its metadata: lower-case "
        "letters, digits and hyphens."
    )
    description: Annotated[str, Field(strict=True)] = Field(
        default="", description="What it is for, in one line."
    )
    data: Data
    examples: Examples = Examples()
    validate_data: Annotated[Validate, Field(alias="validate")] = Validate()
    sensitive: Sensitive = Field(
        default=(),
        description="Features whose values are never printed, logged, stored in ML "
        "Metadata or drawn, only counted.",
    )
    schema_file: Annotated[Text | None, Field(alias="schema")] = Field(
        default=None,
        description="The reviewed schema, relative to the project root or absolute. "
        "null: `schemas/<name>/schema.pbtxt`.",
    )
    label: Label
    features: NotEmpty[dict[str, FeatureSpec]] | None = Field(
        default=None,
        description="What the model is given, by feature. null: every feature of the "
        "schema but the label, by its type; vectors are left to `preprocessing`.",
    )
    preprocessing: Text | None = Field(
        default=None,
        description="A function of your own, `package.module:preprocessing_fn`. null: "
        "what `features` says.",
    )
    model: Text = Field(
        description="`dense`, `cnn`, `wide_deep`, or a function of your own, "
        "`package.module:build_model`."
    )
    model_params: Params = Field(
        default={}, description="Arguments of the model's function."
    )
    train: Train = Train()
    evaluate: Evaluate
    push: Push = Push()
    retries: Retry = Retry()
    memory_mb: Memory = Memory()
    private: Annotated[bool, Field(strict=True)] = Field(
        default=False,
        description="Whether only this user may read what a run writes into the "
        "workspace, all but the served model.",
    )

    _origin: Origin = PrivateAttr(default=Origin(root=Path("/"), file="<config>"))

    @property
    def origin(self) -> Origin:
        """Where each key came from."""
        return self._origin

    @property
    def root(self) -> Path:
        """The project root, absolute."""
        return self._origin.root

    @property
    def data_dir(self) -> Path:
        """The local directory that the file patterns are below, absolute."""
        return self.root / self.data.dir

    @property
    def data_uri(self) -> str:
        """The same for any file system: ``gs://...``, or an absolute path."""
        return self.data.dir if is_remote(self.data.dir) else str(self.data_dir)

    @property
    def schema_path(self) -> Path:
        """The reviewed schema, absolute."""
        default = f"schemas/{self.name}/schema.pbtxt"
        return self.root / (self.schema_file or default)

    @property
    def serving_dir(self) -> Path | None:
        """Where the model is pushed to, absolute; None for the workspace's own."""
        given = self.push.serving_dir
        if given is None:
            return None
        return destination(given, self.root, "push.serving_dir")
