"""The Trainer's executor where it runs as a custom job of Vertex AI, and labels it.

TFX's executor starts the job from within the node's task, and waits for it. It does not
end it with the task. The label names the pipeline job, so that ``VertexService.cancel``
finds the custom job of a run, and a repeated task that of its former attempt: two
trainings would write the same checkpoints.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from tfx.extensions.google_cloud_ai_platform import constants
from tfx.extensions.google_cloud_ai_platform.trainer import executor as trainer

from components.artifacts import run_id_of
from runners.cloud.vertex_client import JOB_LABEL, VertexService, job_label

_POLL_S = 10.0


class TrainerJob(trainer.GenericExecutor):
    """Adds the label of the pipeline job, and cancels what a former attempt started."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        config = json.loads(exec_properties["custom_config"])
        arguments = config[trainer.TRAINING_ARGS_KEY]
        label = {JOB_LABEL: job_label(run_id_of(self._context) or uuid.uuid4().hex)}
        arguments["labels"].update(label)
        service = VertexService(
            arguments["project"], config[constants.VERTEX_REGION_KEY]
        )
        while service.cancel_custom_jobs(label):
            time.sleep(_POLL_S)
        properties = {**exec_properties, "custom_config": json.dumps(config)}
        super().Do(input_dict, output_dict, properties)
