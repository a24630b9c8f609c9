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
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    model_validator,
)

from pipeline.config_section import Section
from pipeline.config_types import (
    Channels,
    ClassList,
    Count,
    Number,
    Params,
    PipelineName,
    Pixels,
    SliceSpec,
    Text,
    expect,
    not_empty,
)
from pipeline.data_config import Data, Examples, Sensitive, Validate
from sluice.files.storage import is_remote

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
    """What is predicted.

    Attributes:
      feature: the label's name in the schema.
      classes: its values in the order of the model's outputs (of two, the second is
        the positive one); None takes them from the schema's domain.
    """

    feature: Text
    classes: ClassList = None


class Numeric(Section):
    """A number, as a z-score."""

    kind: Literal["numeric"] = "numeric"


class Bucketized(Section):
    """A number, as the one of ``buckets`` quantiles that it falls into."""

    kind: Literal["bucketized"] = "bucketized"
    buckets: Annotated[int, Field(strict=True, ge=2, le=10_000)] = 10


class Vocabulary(Section):
    """A string or a whole number, as its place among those seen in training.

    Attributes:
      top_k: how many of the most frequent values are kept; None keeps all.
      oov_buckets: how many buckets the other values are hashed into.
    """

    kind: Literal["vocabulary"] = "vocabulary"
    top_k: Count | None = None
    oov_buckets: Count = 1


class Hashed(Section):
    """A string or a whole number, as a hash; nothing is learned from the data."""

    kind: Literal["hashed"] = "hashed"
    buckets: Annotated[int, Field(strict=True, ge=2)] = 64


class Image(Section):
    """An encoded image (PNG, JPEG), decoded and resized.

    Attributes:
      height: in pixels.
      width: in pixels.
      channels: 1 for grey, 3 for RGB, 4 for RGBA.
    """

    kind: Literal["image"] = "image"
    height: Pixels
    width: Pixels
    channels: Channels


FeatureSpec = Annotated[
    Numeric | Bucketized | Vocabulary | Hashed | Image, Field(discriminator="kind")
]
FEATURE_KINDS = ("numeric", "bucketized", "vocabulary", "hashed", "image")


class EarlyStopping(Section):
    """Stops after ``patience`` epochs in which the eval loss has not improved."""

    patience: Count = 3


class Train(Section):
    """How the model is trained.

    Attributes:
      epochs: passes over the train split, at most.
      batch_size: examples per step over all replicas (the global batch size).
      learning_rate: of the optimizer.
      seed: of shuffling, initial weights and dropout.
      early_stopping: None trains all epochs.
    """

    epochs: Count = 10
    batch_size: Count = 128
    learning_rate: Annotated[Number, Field(gt=0)] = 0.001
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**31)] = 17
    early_stopping: EarlyStopping | None = None


class Metric(Section):
    """A metric that TFMA computes. ``AUC`` is short for ``{class: AUC}``.

    Attributes:
      class_name: a class of TFMA or of ``tf_keras.metrics``.
      name: what the result is called; None for the class's own name.
      params: arguments of the class.
    """

    class_name: Annotated[Text, Field(alias="class")]
    name: Text | None = None
    params: Params = {}


def _metric(value: Any) -> Any:
    return {"class": value} if isinstance(value, str) else value


class Change(Section):
    """How far a metric may move from the latest blessed model's, as TFMA has it.

    With ``higher_is_better``, candidate - baseline must be at least ``absolute``, and
    (candidate - baseline) / |baseline| at least ``relative``; with ``lower_is_better``
    at most. ``absolute: -0.01`` lets a metric that should be high fall by 0.01.
    """

    direction: Literal["higher_is_better", "lower_is_better"]
    absolute: Number | None = None
    relative: Number | None = None

    @model_validator(mode="after")
    def _has_a_limit(self) -> Change:
        if self.absolute is None and self.relative is None:
            expect("given a limit: absolute, relative or both")
        return self


class Threshold(Section):
    """What a metric must reach before the model is pushed.

    Attributes:
      metric: a result's name: one of ``evaluate.metrics``.
      slice: ``{feature: value}``, or ``[feature]`` for each of its values, or None
        for all examples.
      lower_bound: in the metric's own unit, inclusive.
      upper_bound: likewise.
      change: against the latest blessed model; not judged where there is none.
      min_examples_per_class: a slice with fewer examples of some class is not judged.
    """

    metric: Text
    slice: SliceSpec = None
    lower_bound: Number | None = None
    upper_bound: Number | None = None
    change: Change | None = None
    min_examples_per_class: Count | None = None

    @model_validator(mode="after")
    def _has_a_limit(self) -> Threshold:
        low, high = self.lower_bound, self.upper_bound
        if low is None and high is None and self.change is None:
            expect("given a limit: lower_bound, upper_bound or change")
        if low is not None and high is not None and low > high:
            expect("given a lower_bound that is not above its upper_bound")
        return self


class Evaluate(Section):
    """What is measured, on which slices, and what gates the push.

    Attributes:
      metrics: at least one.
      slices: each a list of features that are crossed; all examples are always one.
      thresholds: all of them must hold.
    """

    metrics: Annotated[
        tuple[Annotated[Metric, BeforeValidator(_metric)], ...],
        AfterValidator(not_empty),
    ]
    slices: tuple[Annotated[tuple[Text, ...], AfterValidator(not_empty)], ...] = ()
    thresholds: tuple[Threshold, ...] = ()


class Push(Section):
    """Where the model goes.

    ``serving_dir`` is relative to the project root or absolute; None is ``serving/``
    in the workspace.
    """

    serving_dir: Text | None = None


class Retry(Section):
    """Further attempts after failures that may pass by themselves, on local runs.

    Such as a service that does not answer or a connection that broke; never a gate,
    bad data or a bug.

    Attributes:
      default: further attempts of every node that is not named.
      nodes: further attempts by node, such as ``{Trainer: 2}``.
      backoff_s: seconds before the second attempt; doubled with each further one.
    """

    default: Annotated[int, Field(strict=True, ge=0, le=20)] = 0
    nodes: dict[Text, Annotated[int, Field(strict=True, ge=0, le=20)]] = {}
    backoff_s: Annotated[Number, Field(ge=0)] = 5.0


class Memory(Section):
    """How much memory a node may use, on local runs.

    Counted are all of its processes together, what they share once. A node that uses
    more is killed and has failed; None leaves it what the machine has.

    Attributes:
      default: of every node that is not named, in MB (1,000,000 bytes).
      nodes: by node, such as ``{Trainer: 8000}``.
    """

    default: Count | None = None
    nodes: dict[Text, Count | None] = {}


class Config(Section):
    """One pipeline.

    Attributes:
      version: of this format.
      name: of the pipeline, its workspace and its metadata.
      description: one line.
      data: where the TFRecords are.
      examples: which of the records are taken.
      validate_data: what the data gate lets pass.
      sensitive: features whose values are never printed, logged, stored in ML Metadata
        or drawn, only counted.
      schema_file: the reviewed schema, relative to the project root or absolute;
        None is ``schemas/<name>/schema.pbtxt``.
      label: what is predicted.
      features: None uses every feature of the schema, by its type.
      preprocessing: None, or ``package.module:preprocessing_fn``.
      model: ``dense``, ``cnn``, ``wide_deep``, or ``package.module:build_model``.
      model_params: arguments of ``build_model``.
      train: how the model is trained.
      evaluate: what is measured, and what gates the push.
      push: where the model goes.
      retries: how often a node is tried again.
      memory_mb: how much memory a node may use.
      private: whether only this user may read what a run writes into the workspace,
        all but the served model.
    """

    version: Literal[1]
    name: PipelineName
    description: Annotated[str, Field(strict=True)] = ""
    data: Data
    examples: Examples = Examples()
    validate_data: Annotated[Validate, Field(alias="validate")] = Validate()
    sensitive: Sensitive = ()
    schema_file: Annotated[Text | None, Field(alias="schema")] = None
    label: Label
    features: Annotated[dict[str, FeatureSpec] | None, AfterValidator(not_empty)] = None
    preprocessing: Text | None = None
    model: Text
    model_params: Params = {}
    train: Train = Train()
    evaluate: Evaluate
    push: Push = Push()
    retries: Retry = Retry()
    memory_mb: Memory = Memory()
    private: Annotated[bool, Field(strict=True)] = False

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
        return None if given is None else self.root / given
