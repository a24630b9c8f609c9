"""The ``ModelVerdict`` node: blesses a model or explains why not; always succeeds.

Its driver summarizes the baseline before the cache lookup: skipped blessed models are
no inputs of the node in the graph. Summarized there, they are part of the cache key.
Cloud engines run no custom drivers: there the verdict names the baseline by its URI.
"""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import replace
from typing import Any

from tfx.components.evaluator import constants
from tfx.components.evaluator import executor as evaluator_executor
from tfx.dsl.components.base import base_driver, executor_spec
from tfx.orchestration.portable import base_driver as portable_driver
from tfx.proto.orchestration import driver_output_pb2
from tfx.types import artifact_utils, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter
from tfx.utils import io_utils, path_utils

from components import artifacts
from components.artifacts import (
    SKIPPED,
    Artifacts,
    baseline_and_older,
    publish_verdict,
    without_absent,
)
from components.baseline_model.blessed_models import (
    BlessedModel,
    blessed_models,
    name_of,
    search_baseline,
)
from components.component import Component
from components.model_verdict.judge import BaselineSummary, SkippedModel, judge
from components.model_verdict.read_evaluation import read_candidate, read_evaluation
from components.model_verdict.settings import Settings
from sluice.mlmd_items import Artifact, maker_run, newest_first
from sluice.model_facts import read_facts
from sluice.node_kinds import ABOUT_BASELINE, METRICS
from sluice.record.verdict import Check


class Executor(evaluator_executor.Executor):
    """Executor of ``ModelVerdict``; it succeeds whatever the verdict is.

    It has nothing of its base class, TFX's Evaluator: on Vertex AI TFX writes resource
    names of models into a blessing only for its subclasses, and the resolver of the
    latest blessed model looks for such a name.
    """

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Any
    ) -> None:
        uri = artifact_utils.get_single_uri(input_dict["evaluation"])
        model = artifact_utils.get_single_instance(input_dict["model"])
        blessed = without_absent(input_dict).get("baseline_model", [])
        baselines, _ = baseline_and_older(blessed, model.uri)
        is_candidate = bool(blessed) and not baselines
        settings = Settings.model_validate_json(exec_properties["settings"])
        about = exec_properties.get(ABOUT_BASELINE)
        candidate = read_candidate(uri, settings.classes)
        verdict = judge(
            settings,
            candidate,
            read_evaluation(uri, "baseline", settings.classes) if baselines else None,
            BaselineSummary.model_validate_json(about)
            if about
            else _summarize(input_dict, baselines, is_candidate=is_candidate),
        )
        if row := _decision(model.uri):
            verdict = replace(verdict, rows=(*verdict.rows, row))
        publish_verdict(
            verdict, artifact_utils.get_single_instance(output_dict["verdict"])
        )
        blessing = artifact_utils.get_single_instance(output_dict["blessing"])
        metrics = json.dumps(candidate.metrics.get((), {}))
        blessing.set_string_custom_property(METRICS, metrics)
        is_blessed = verdict.passed and not exec_properties.get("trial")
        _bless(blessing, is_blessed, model, baselines)


def _decision(model_uri: str) -> Check | None:
    """Returns the row about the positive class; None where there are not two."""
    facts = read_facts(path_utils.serving_model_path(model_uri))
    if facts.get("task") != "classification" or len(facts["classes"]) != 2:
        return None
    why = f"predicted from a probability of {facts['threshold']} on"
    return Check(check="positive class", actual=facts["classes"][1], why=why)


def _summarize(
    input_dict: Artifacts, baselines: list[Any], *, is_candidate: bool
) -> BaselineSummary:
    """Returns the summary that the artifacts give, where no driver made one."""
    return BaselineSummary(
        name=baselines[0].uri if baselines else None,
        is_candidate=is_candidate,
        skipped=tuple(
            SkippedModel(name=name, why=why, retired=False)
            for item in input_dict.get("baseline_model", ())
            for name, why in json.loads(
                item.get_string_custom_property(SKIPPED) or "[]"
            )
        ),
    )


def _bless(blessing: Any, is_blessed: bool, model: Any, baselines: list[Any]) -> None:
    """Writes the blessing in the form that TFX's own resolver and Pusher read."""
    blessing.set_string_custom_property(
        constants.ARTIFACT_PROPERTY_CURRENT_MODEL_URI_KEY, model.uri
    )
    blessing.set_int_custom_property(
        constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY, model.id
    )
    for baseline in baselines:
        blessing.set_string_custom_property(
            constants.ARTIFACT_PROPERTY_BASELINE_MODEL_URI_KEY, baseline.uri
        )
        blessing.set_int_custom_property(
            constants.ARTIFACT_PROPERTY_BASELINE_MODEL_ID_KEY, baseline.id
        )
    yes, no = constants.BLESSED_FILE_NAME, constants.NOT_BLESSED_FILE_NAME
    name = yes if is_blessed else no
    io_utils.write_string_file(os.path.join(blessing.uri, name), "")
    blessing.set_int_custom_property(
        constants.ARTIFACT_PROPERTY_BLESSED_KEY,
        constants.BLESSED_VALUE if is_blessed else constants.NOT_BLESSED_VALUE,
    )


class Driver(base_driver.BaseDriver, portable_driver.BaseDriver):
    """Driver of ``ModelVerdict``; sets the exec property ``compared_with``."""

    def run(self, execution_info: Any) -> driver_output_pb2.DriverOutput:
        pipeline = execution_info.pipeline_info.id
        inputs = execution_info.input_dict
        candidate = [item.id for item in inputs["model"]]
        used = [item.id for item in newest_first(inputs.get("baseline_model", ()))]
        with self._metadata_handle as handle:
            summary = summarize_baseline(handle.store, pipeline, candidate, used)
        result = driver_output_pb2.DriverOutput()
        about = result.exec_properties[ABOUT_BASELINE]
        about.string_value = summary.model_dump_json()
        return result


def summarize_baseline(
    store: Any, pipeline: str, candidate: list[int], used: list[int]
) -> BaselineSummary:
    """Returns the summary of the baseline that was resolved for a candidate.

    Args:
      store: an ML Metadata store.
      pipeline: name of the pipeline.
      candidate: id of the candidate.
      used: ids of the resolved models, the newest first; empty if there is none.
    """
    context = store.get_context_by_type_and_name("pipeline", pipeline)
    stored = store.get_artifacts_by_context(context.id) if context else ()
    artifacts = [Artifact.of(item) for item in stored]

    def name(model: BlessedModel) -> str:
        return name_of(model, maker_run(store, model.model.id), artifacts)

    blessed = blessed_models(artifacts)
    searched = [*search_baseline(blessed, max(1, len(used)))]
    skipped = itertools.takewhile(lambda item: item[1] is not None, searched)
    names = [name(model) for model, _ in searched if model.model.id in used]
    is_candidate = bool(used) and used[:1] == candidate
    return BaselineSummary(
        pipeline=pipeline,
        name=names[0] if names and not is_candidate else None,
        older=tuple(names[1:]),
        is_candidate=is_candidate,
        skipped=tuple(
            SkippedModel(name=name(model), why=why, retired=model.retired is not None)
            for model, why in skipped
            if why is not None
        ),
        retired="".join(
            f"{name(model)} was retired: {model.retired}"
            for model in blessed
            if model.model.id in candidate and model.retired is not None
        ),
    )


class ModelVerdictSpec(ComponentSpec):
    """An evaluation in; a verdict and a blessing out."""

    PARAMETERS = {
        "settings": ExecutionParameter(type=str),
        # 1: the model is judged and not blessed. Absent otherwise, so that the run
        # after a trial has another cache key, and blesses.
        "trial": ExecutionParameter(type=int, optional=True),
        # Set by the driver; see there.
        ABOUT_BASELINE: ExecutionParameter(type=str, optional=True),
    }
    INPUTS = {
        "evaluation": ChannelParameter(type=standard_artifacts.ModelEvaluation),
        "model": ChannelParameter(type=standard_artifacts.Model),
        "baseline_model": ChannelParameter(
            type=standard_artifacts.Model, optional=True
        ),
    }
    OUTPUTS = {
        "verdict": ChannelParameter(type=artifacts.ModelVerdict),
        "blessing": ChannelParameter(type=standard_artifacts.ModelBlessing),
    }


class ModelVerdict(Component):
    """Compares an evaluation with the thresholds of the config, and blesses the model.

    The Evaluator only measures. So a changed threshold does not evaluate again, small
    slices can be exempt, the reasons are published, and this is the only blessing in ML
    Metadata, by which the baseline is selected. See docs/adr/0001-model-verdict.md.

    Example::

        verdict = ModelVerdict(
            evaluation=evaluator.outputs["evaluation"],
            model=trainer.outputs["model"],
            baseline_model=resolver.outputs["model"],
            settings=Settings(
                thresholds=(Threshold(metric="auc", lower_bound=0.9),),
                classes=("no", "yes"),
                split="test",
            ),
        )
    """

    SPEC_CLASS = ModelVerdictSpec
    # It uses no Beam, but its base class wants the context of one that does.
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)
    DRIVER_CLASS = Driver
