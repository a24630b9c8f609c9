"""Executors of nodes that run as a custom job of Vertex AI, and label it.

TFX's executors start the job from within the node's task, and wait for it. They do not
end it with the task. The labels name the pipeline job and the node, so that
``VertexService.cancel`` finds the custom jobs of a run, and a repeated task the one of
its former attempt: two trainings would write the same checkpoints.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.extensions.google_cloud_ai_platform import constants
from tfx.extensions.google_cloud_ai_platform.trainer import executor as trainer
from tfx.extensions.google_cloud_ai_platform.tuner import executor as tuner

from components.run_id import run_id_of
from runners.cloud.trainer_job import NODE_LABEL
from runners.vertex.client import JOB_LABEL, VertexService, job_label

_POLL_S = 10.0


class _LabelledJob(base_executor.BaseExecutor):
    """Adds the label of the pipeline job, and cancels what a former attempt started."""

    _ARGUMENTS: str

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        config = json.loads(exec_properties["custom_config"])
        arguments = config[self._ARGUMENTS]
        labels = arguments["labels"]
        labels[JOB_LABEL] = job_label(run_id_of(self._context) or uuid.uuid4().hex)
        service = VertexService(
            arguments["project"], config[constants.VERTEX_REGION_KEY]
        )
        former = {key: labels[key] for key in (JOB_LABEL, NODE_LABEL)}
        while service.cancel_custom_jobs(former):
            time.sleep(_POLL_S)
        properties = {**exec_properties, "custom_config": json.dumps(config)}
        super().Do(input_dict, output_dict, properties)


class TrainerJob(_LabelledJob, trainer.GenericExecutor):
    """Executor of TFX's Trainer."""

    _ARGUMENTS = trainer.TRAINING_ARGS_KEY


class TunerJob(_LabelledJob, tuner.Executor):
    """Executor of TFX's Tuner."""

    _ARGUMENTS = tuner.TUNING_ARGS_KEY
