"""Executor of ``ModelVerdict``: reads the evaluation, judges, publishes, blesses."""

from __future__ import annotations

import json
import os
from typing import Any

from tfx.components.evaluator import constants
from tfx.components.evaluator import executor as evaluator_executor
from tfx.types import artifact_utils
from tfx.utils import io_utils

from components.artifacts import SKIPPED, publish_verdict, without_absent
from components.model_verdict.baseline_summary import BaselineSummary, SkippedModel
from components.model_verdict.judge import judge
from components.model_verdict.read_evaluation import read_candidate, read_evaluation
from components.model_verdict.threshold import Settings
from sluice.node_kinds import ABOUT_BASELINE


class Executor(evaluator_executor.Executor):
    """Executor of ``ModelVerdict``; it succeeds whatever the verdict is.

    It has nothing of its base class, TFX's Evaluator: on Vertex AI TFX writes resource
    names of models into a blessing only for its subclasses, and the resolver of the
    latest blessed model looks for such a name.
    """

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        uri = artifact_utils.get_single_uri(input_dict["evaluation"])
        model = artifact_utils.get_single_instance(input_dict["model"])
        given = without_absent(input_dict).get("baseline_model", [])
        # A model that was blessed before is its own baseline on the next run.
        baselines = [item for item in given if item.uri != model.uri]
        settings = Settings.model_validate_json(exec_properties["settings"])
        about = exec_properties.get(ABOUT_BASELINE)
        verdict = judge(
            settings,
            read_candidate(uri, settings.classes),
            read_evaluation(uri, "baseline", settings.classes) if baselines else None,
            BaselineSummary.model_validate_json(about)
            if about
            else _summarize(input_dict, baselines, is_candidate=given != baselines),
        )
        publish_verdict(
            verdict, artifact_utils.get_single_instance(output_dict["verdict"])
        )
        blessing = artifact_utils.get_single_instance(output_dict["blessing"])
        _bless(blessing, verdict.passed, model, baselines)


def _summarize(
    input_dict: dict[str, list[Any]], baselines: list[Any], *, is_candidate: bool
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


def _bless(blessing: Any, passed: bool, model: Any, baselines: list[Any]) -> None:
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
    name = constants.BLESSED_FILE_NAME if passed else constants.NOT_BLESSED_FILE_NAME
    io_utils.write_string_file(os.path.join(blessing.uri, name), "")
    blessing.set_int_custom_property(
        constants.ARTIFACT_PROPERTY_BLESSED_KEY,
        constants.BLESSED_VALUE if passed else constants.NOT_BLESSED_VALUE,
    )
