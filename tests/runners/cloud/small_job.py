"""A compiled job of four tasks and an exit handler, without TFX."""

from __future__ import annotations

from typing import Any

EXECUTORS = {
    "DataVerdict": "components.data_verdict.component.Executor",
    "DataGate": "components.data_gate.Executor",
    "Trainer": "tfx.components.trainer.executor.GenericExecutor",
    "Pusher": "components.pusher.executor.Executor",
    "Report": "runners.cloud.exit_handler.report_Executor",
}


def small_job() -> dict[str, Any]:
    """Returns a job: a chain of the tasks, then the exit handler ``Report``."""
    tasks: dict[str, Any] = {
        name: {
            "componentRef": {"name": name},
            "taskInfo": {"name": name},
            "dependentTasks": [before] if before else [],
            "cachingOptions": {"enableCache": name == "Trainer"},
        }
        for before, name in zip((None, *EXECUTORS), EXECUTORS, strict=False)
    }
    report = tasks.pop("Report")
    report["triggerPolicy"] = {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}
    report["dependentTasks"] = ["tfx-dag"]
    components: dict[str, Any] = {n: {"executorLabel": n} for n in EXECUTORS}
    components["tfx-dag"] = {"dag": {"tasks": tasks}}
    executors = {
        name: {
            "container": {
                "image": "image",
                "command": ["python"],
                "args": ["--executor_class_path", path],
            }
        }
        for name, path in EXECUTORS.items()
    }
    parameters = {"accept_data": {"parameterType": "STRING", "defaultValue": ""}}
    return {
        "displayName": "digits",
        "labels": {"tfx_version": "1-16-0"},
        "pipelineSpec": {
            "schemaVersion": "2.1.0",
            "sdkVersion": "tfx-1.16.0",
            "pipelineInfo": {"name": "digits"},
            "root": {
                "inputDefinitions": {"parameters": parameters},
                "dag": {
                    "tasks": {
                        "tfx-dag": {"componentRef": {"name": "tfx-dag"}},
                        "Report": report,
                    }
                },
            },
            "components": components,
            "deploymentSpec": {"executors": executors},
        },
        "runtimeConfig": {"gcsOutputDirectory": "gs://bucket/digits/artifacts"},
    }
