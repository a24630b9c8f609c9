"""The ``Exports`` node: exports a blessed model, and compares each with the SavedModel.

It issues TFX's infra blessing, with a copy of the model that has the exports in
``assets.extra/exports``, where TensorFlow Serving looks at nothing. That copy is what
the Pusher pushes: so exports appear, are deleted and come back with their version.
"""

from __future__ import annotations

import json
import pkgutil
import shutil
from collections.abc import Mapping
from typing import Any

from tfx.components.util import model_utils
from tfx.dsl.components.base import base_executor, executor_spec
from tfx.types import standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter
from tfx.utils import io_utils, path_utils

from components import artifacts
from components.artifacts import Artifacts, one_of_each, publish_verdict
from components.component import Component
from components.exports.judge import GATE, judge
from components.exports.settings import Export
from sluice.record.verdict import Check, Verdict
from sluice.storage.local_copy import local_copy, local_output
from sluice.storage.storage import storage_for

EXPORTS_DIR = "assets.extra/exports"
_SPLIT = "eval"


class Executor(base_executor.BaseExecutor):
    """Executor of ``Exports``; a model that is not blessed is not exported."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Any
    ) -> None:
        inputs, outputs = one_of_each(input_dict), one_of_each(output_dict)
        blessing = outputs["blessing"]
        if model_utils.is_model_blessed(inputs["model_blessing"]):
            verdict = _export(inputs, blessing, exec_properties)
        else:
            why = "the model was not blessed"
            row = Check(check="exports", actual="none", why=why)
            verdict = Verdict(GATE, (row,))
        publish_verdict(verdict, outputs["exports"])
        blessing.set_int_custom_property("blessed", int(verdict.passed))


def _export(inputs: Mapping[str, Any], blessing: Any, properties: Mapping) -> Verdict:
    """Writes the model with its exports, and compares what they predict."""
    exports = [Export.model_validate(x) for x in json.loads(properties["formats"])]
    built_from = json.loads(properties["built_from"])
    if tuned := inputs.get("hyperparameters"):
        file = io_utils.get_only_uri_in_dir(tuned.uri)
        built_from["tuned"] = json.loads(storage_for(file).read(file))["values"]
    export_fn = pkgutil.resolve_name(properties["export_fn"])
    with (
        local_copy(path_utils.serving_model_path(inputs["model"].uri)) as saved_model,
        local_copy(inputs["model_run"].uri) as model_run,
        local_copy(inputs["transform_graph"].uri) as transform_graph,
        local_output(path_utils.stamped_model_path(blessing.uri)) as folder,
    ):
        shutil.copytree(saved_model, folder, dirs_exist_ok=True)
        comparisons = export_fn(
            exports,
            built_from,
            saved_model=saved_model,
            model_run=model_run,
            transform_graph=transform_graph,
            examples=inputs["examples"].uri,
            target=folder / EXPORTS_DIR,
        )
    blessing.set_int_custom_property("has_model", 1)
    return judge(exports, comparisons, _SPLIT)


class ExportsSpec(ComponentSpec):
    """A model, and what it was made from, in; its exports and a blessing out."""

    PARAMETERS = {
        # Import path of the function that writes and compares exports.
        "export_fn": ExecutionParameter(type=str),
        # Lists of ``Export``.
        "formats": ExecutionParameter(type=str),
        # What the model is built from.
        "built_from": ExecutionParameter(type=str),
    }
    INPUTS = {
        "model": ChannelParameter(type=standard_artifacts.Model),
        "model_run": ChannelParameter(type=standard_artifacts.ModelRun),
        "model_blessing": ChannelParameter(type=standard_artifacts.ModelBlessing),
        "transform_graph": ChannelParameter(type=standard_artifacts.TransformGraph),
        "examples": ChannelParameter(type=standard_artifacts.Examples),
        "hyperparameters": ChannelParameter(
            type=standard_artifacts.HyperParameters, optional=True
        ),
    }
    OUTPUTS = {
        "exports": ChannelParameter(type=artifacts.Exports),
        "blessing": ChannelParameter(type=standard_artifacts.InfraBlessing),
    }


class Exports(Component):
    """Exports a blessed model to other formats; a disagreement holds it back.

    Example::

        exports = Exports(
            model=trainer.outputs["model"],
            model_run=trainer.outputs["model_run"],
            model_blessing=verdict.outputs["blessing"],
            transform_graph=transform.outputs["transform_graph"],
            examples=tfrecord_gen.outputs["examples"],
            export_fn="pipeline.training.exports.export_fn:export_fn",
            formats=[Export(format="tflite", quantize="int8")],
            built_from={
                "feature_set": feature_set.model_dump(),
                "own_preprocessing": False,
                "model": "pipeline.training.models.cnn:build_model",
                "model_params": {},
            },
        )
    """

    SPEC_CLASS = ExportsSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)
