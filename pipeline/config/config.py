"""The config of a pipeline: keys, types, bounds and defaults of its YAML.

An unknown key is an error. These models check the values by themselves and against each
other; ``load`` reads and merges the files, ``validate`` checks the values against the
schema and the project's files. Paths stay as written, so that fingerprints do not
depend on the machine; ``data_dir``, ``schema_path`` and ``serving_dir`` are absolute.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr, StrictStr, model_validator

from components.exports.settings import ExportSpec
from components.retrain_decision.settings import Retrain
from components.serving_check.settings import ServingCheck, ServingCheckSpec
from pipeline.config.beam import Beam
from pipeline.config.cloud import Cloud
from pipeline.config.data import Data, Examples, Sensitive, Validate
from pipeline.config.evaluate import Evaluate
from pipeline.config.features import FeatureSet, FeatureSpec
from pipeline.config.label import Label
from pipeline.config.notify import Notify
from pipeline.config.problems import Origin
from pipeline.config.train import TRAINED_BEFORE, Train
from pipeline.config.tune import Tune
from sluice.config_section import (
    Directory,
    Flag,
    NotEmpty,
    Params,
    PipelineName,
    ProjectPath,
    Section,
    Text,
    matching,
    refuse,
)
from sluice.errors import ConfigError
from sluice.storage.output_path import resolve_output_uri
from sluice.storage.storage import is_remote

# The models that come with Sluice.
BUNDLED_MODELS = {
    "dense": "pipeline.training.models.dense:build_model",
    "cnn": "pipeline.training.models.cnn:build_model",
    "wide_deep": "pipeline.training.models.dense:build_wide_deep",
}

_SEVERAL = ("multi_worker", "parameter_server")


class Push(Section):
    """Where the model is pushed."""

    serving_dir: Directory | None = None
    """Relative to the project root, absolute, below `~`, or a `gs://` address; of one
    pipeline only. null: `serving/` in the workspace."""


_NodeName = Annotated[
    StrictStr,
    matching(
        r"[A-Z][A-Za-z0-9_]{0,62}",
        "1 to 63 letters, digits and underscores, the first an upper-case letter",
    ),
]
_Source = Annotated[
    StrictStr,
    matching(r"\w+\.\w+", "an output of a node, such as TFRecordGen.examples"),
]


class CustomNode(Section):
    """A node that is added to the graph."""

    component: Text
    """A TFX component, `package.module:Class`, or a function with `@component`."""
    inputs: dict[Text, _Source] = {}
    """What it reads, by input: `<node>.<output>`, such as `{examples:
    TFRecordGen.examples}`."""
    parameters: Params = {}
    """Its other arguments; a mapping where the component takes a proto."""
    after: tuple[Text, ...] = ()
    """Nodes that it waits for without reading their outputs."""
    before: tuple[Text, ...] = ()
    """Nodes that wait for it, and do not run if it fails."""


class Config(Section):
    """One pipeline."""

    version: Literal[1]
    """Version of the config's format."""
    name: PipelineName
    """Name of the pipeline, its workspace and its metadata: lower-case letters, digits
    and hyphens."""
    description: StrictStr = ""
    """What the pipeline is for, in one line."""
    data: Data
    examples: Examples = Examples.model_construct()
    validate_data: Annotated[Validate, Field(alias="validate")] = (
        Validate.model_construct()
    )
    sensitive: Sensitive = ()
    """Features whose values are never printed, logged, stored in ML Metadata or drawn,
    only counted."""
    schema_file: Annotated[ProjectPath | None, Field(alias="schema")] = None
    """The reviewed schema, relative to the project root or absolute. null:
    `schemas/<name>/schema.pbtxt`."""
    label: Label
    features: NotEmpty[dict[str, FeatureSpec]] | None = None
    """What the model is given, by feature. null: every feature of the schema but the
    label, by its type; lists are left to `preprocessing`, if there is one."""
    preprocessing: Text | None = None
    """A function of your own, `package.module:preprocessing_fn`. null: what `features`
    says."""
    model: Text
    """`dense`, `cnn`, `wide_deep`, a model of `tf.keras.applications` such as `VGG16`,
    or a function of your own, `package.module:build_model`."""
    model_params: Params = {}
    """Arguments of the model function."""
    train: Train = Train.model_construct()
    tune: Tune | None = None
    """null: none."""
    evaluate: Evaluate
    export: tuple[ExportSpec, ...] = ()
    """Formats beside the SavedModel, in the pushed version's `assets.extra/exports`."""
    serving_check: ServingCheckSpec = ServingCheck.model_construct()
    """null: as `false`."""
    push: Push = Push.model_construct()
    retrain: Retrain | None = None
    """null: whenever there is new data. `sluice run` always trains."""
    nodes: dict[_NodeName, CustomNode] = {}
    """Nodes to add to the graph, by id."""
    notify: Notify = Notify.model_construct()
    beam: Beam = Beam.model_construct()
    cloud: Cloud | None = None
    """null: none; profiles such as `vertex` set it."""
    private: Flag = False
    """Whether only this user may read what a run writes into the workspace, all but the
    served model. The record then has no sample of records or images."""

    _origin: Origin = PrivateAttr(default=Origin(root=Path("/"), file="<config>"))

    @model_validator(mode="after")
    def _fits_together(self) -> Config:
        if self.label.feature in self.sensitive:
            text = "the label cannot be sensitive: its classes are shown everywhere"
            refuse(text, "sensitive")
        self.evaluate.check_targets(self.label.targets)
        for index, names in enumerate(self.evaluate.slices):
            for name in {*names} & {*self.sensitive}:
                text = f"metrics per value of {name!r} would show its values"
                refuse(text, "evaluate", "slices", index)
        if self.tune and (self.train.processes or self.train.strategy in _SEVERAL):
            text = "a search runs in one process: remove train.processes, or another "
            refuse(f"{text}strategy than multi_worker and parameter_server", "tune")
        exports = [export.name for export in self.export]
        for index, export in enumerate(self.export):
            if export.name in exports[:index]:
                refuse(f"there is another export {export.name!r}", "export", index)
            is_compared = export.difference_limit(0.0) is not None
            if self.label.task == "regression" and not is_compared:
                text = "of a regression without classes, set max_difference"
                refuse(text, "export", index)
        limits_changes = self.serving_check and self.serving_check.max_changed_answers
        if limits_changes is not None and self.label.task == "regression":
            text = "a regression has no classes that may change"
            refuse(text, "serving_check", "max_changed_answers")
        if self.retrain and self.retrain.metric_drop:
            self.evaluate.check(self.retrain.metric_drop, "retrain", "metric_drop")
            for index, threshold in enumerate(self.retrain.metric_drop):
                if threshold.change and threshold.slice:
                    text = "what a slice reached at the push is not known: give a bound"
                    refuse(text, "retrain", "metric_drop", index, "change")
        limits = self.validate_data
        for split in (*limits.min_examples, *limits.max_examples):
            if split not in self.data.split_names:
                refuse(f"there is no split {split!r} in data to count", "validate")
        return self

    @property
    def origin(self) -> Origin:
        """File and line of each key."""
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
        """``data.dir`` as a URI: ``gs://...``, or an absolute path."""
        return self.data.dir if is_remote(self.data.dir) else str(self.data_dir)

    @property
    def feature_set(self) -> FeatureSet:
        """Features and label as the nodes take them, of a validated config."""
        return FeatureSet(
            features=self.features or {},
            label=self.label,
            sample_weight=self.train.sample_weight,
        )

    @property
    def is_application(self) -> bool:
        """Whether the model is one of ``tf.keras.applications``."""
        return not (self.model in BUNDLED_MODELS or self.has_own_model)

    @property
    def has_own_model(self) -> bool:
        """Whether the model is a function of the user's own."""
        return "." in self.model or ":" in self.model

    @property
    def model_path(self) -> str:
        """The model's function, ``package.module:function``."""
        if self.is_application:
            return f"pipeline.training.models.application:{self.model}"
        return BUNDLED_MODELS.get(self.model, self.model)

    @property
    def preprocessing_path(self) -> str:
        """The function that preprocesses, ``package.module:function``."""
        return self.preprocessing or "pipeline.training.preprocessing:preprocessing_fn"

    @property
    def weights_file(self) -> Path | None:
        """The weights of a model of ``tf.keras.applications``, absolute."""
        given = self.model_params.get("weights")
        return self.root / given if self.is_application and given else None

    @property
    def warm_start_path(self) -> Path | None:
        """Where the training's first weights are, absolute; None if not at a path."""
        given = self.train.warm_start
        return None if given in (None, *TRAINED_BEFORE) else self.root / str(given)

    @property
    def schema_path(self) -> Path:
        """The reviewed schema, absolute."""
        default = f"schemas/{self.name}/schema.pbtxt"
        return self.root / (self.schema_file or default)

    @property
    def cloud_dir(self) -> str:
        """The pipeline's folder in the bucket, ``<cloud.root>/<name>``.

        Raises:
          ConfigError: the config has none.
        """
        if self.cloud is None or self.cloud.root is None:
            raise ConfigError(
                "cloud.root is not set",
                where=self.origin.location(("cloud",)),
                hint="set it, or pass --set cloud.root=gs://BUCKET/FOLDER",
            )
        return f"{self.cloud.root}/{self.name}"

    @property
    def serving_dir(self) -> str | None:
        """The serving directory, absolute, or its address; None for the workspace's."""
        given = self.push.serving_dir
        if given is None:
            return None
        return resolve_output_uri(given, self.root, "push.serving_dir")
