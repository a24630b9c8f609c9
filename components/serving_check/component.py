"""The ``ServingCheck`` node: asks the exported model in a fresh process.

It issues TFX's infra blessing, with a copy of the model that has its requests as
TensorFlow Serving's warm-up file. That copy is what the Pusher pushes. Unlike TFX's
InfraValidator it needs neither Docker nor Kubernetes.
"""

from __future__ import annotations

import base64
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from tfx.dsl.components.base import base_executor, executor_spec
from tfx.types import standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter
from tfx.utils import path_utils

from components import artifacts
from components.artifacts import Artifacts, one_of_each, publish_verdict
from components.component import Component
from components.serving_check.judge import GATE
from components.serving_check.settings import Settings
from serving.model_store import store_at
from sluice.model_facts import read_facts
from sluice.node_kinds import PREDICTIONS, REFUSED_BY
from sluice.record.verdict import Check, Verdict
from sluice.storage.local_copy import local_copy, local_output


class Executor(base_executor.BaseExecutor):
    """Executor of ``ServingCheck``; it succeeds whatever the verdict is."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Any
    ) -> None:
        inputs, outputs = one_of_each(input_dict), one_of_each(output_dict)
        blessing = outputs["blessing"]
        exported, is_blessed, has_model = inputs.get("exported"), True, True
        if exported is not None:
            is_blessed = bool(exported.get_int_custom_property("blessed"))
            has_model = bool(exported.get_int_custom_property("has_model"))
        if is_blessed and has_model:
            settings = Settings.model_validate_json(exec_properties["settings"])
            verdict = _check(inputs, blessing, settings, exec_properties)
        else:
            why = "Exports has no model that is to be pushed"
            row = Check(check="serving check", actual="none", why=why)
            verdict = Verdict(GATE, (row,))
        if not is_blessed:
            blessing.set_string_custom_property(REFUSED_BY, "Exports")
        publish_verdict(verdict, outputs["check"])
        blessing.set_int_custom_property("blessed", int(is_blessed and verdict.passed))


def _check(
    inputs: dict[str, Any], blessing: Any, settings: Settings, properties: Any
) -> Verdict:
    """Copies the model and checks the copy."""
    import tensorflow as tf

    from components.serving_check.check import check_model
    from components.serving_check.in_process import LoadedModel
    from components.serving_check.predictions import predictions_of_judged
    from components.serving_check.shadow import compare

    tf.config.set_visible_devices([], "GPU")
    source = evaluated = path_utils.serving_model_path(inputs["model"].uri)
    if "exported" in inputs:
        source = path_utils.stamped_model_path(inputs["exported"].uri)
    with (
        local_copy(source) as model,
        local_copy(evaluated) as judged,
        local_output(path_utils.stamped_model_path(blessing.uri)) as folder,
    ):
        shutil.copytree(model, folder, dirs_exist_ok=True)
        examples = inputs["examples"].uri
        verdict = check_model(folder, judged, examples, settings)
        if verdict.passed and (uri := properties.get("served")):
            served = store_at(os.path.dirname(uri)).newest()
            assert served is not None
            requests = Path(properties["requests"])
            rows = compare(folder, served, requests, examples, settings)
            verdict = replace(verdict, rows=(*verdict.rows, *rows))
        if verdict.passed and settings.keeps_predictions:
            loaded, facts = LoadedModel(folder), read_facts(folder)
            found, _ = predictions_of_judged(loaded, facts, examples, settings)
            text = base64.b64encode(found.SerializeToString(deterministic=True))
            blessing.set_string_custom_property(PREDICTIONS, text.decode())
    blessing.set_int_custom_property("has_model", 1)
    return verdict


class ServingCheckSpec(ComponentSpec):
    """A model, or its copy with exports, in; a verdict and a blessing out."""

    PARAMETERS = {
        "settings": ExecutionParameter(type=str),
        # Where requests are recorded: their folder, and that of the newest version.
        "requests": ExecutionParameter(type=str, optional=True),
        "served": ExecutionParameter(type=str, optional=True),
    }
    INPUTS = {
        "model": ChannelParameter(type=standard_artifacts.Model),
        "exported": ChannelParameter(
            type=standard_artifacts.InfraBlessing, optional=True
        ),
        "examples": ChannelParameter(type=standard_artifacts.Examples),
    }
    OUTPUTS = {
        "check": ChannelParameter(type=artifacts.ServingCheck),
        "blessing": ChannelParameter(type=standard_artifacts.InfraBlessing),
    }


class ServingCheck(Component):
    """Holds back a model that a fresh process cannot load, or that answers otherwise.

    Example::

        check = ServingCheck(
            model=trainer.outputs["model"],
            examples=tfrecord_gen.outputs["examples"],
            settings=Settings(split="test", hidden=("label",), max_p99_ms=50.0),
        )
    """

    SPEC_CLASS = ServingCheckSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)
