"""What an exit handler reads of its job, with the client of Vertex AI."""

from __future__ import annotations

import json

import pytest

from tests.runners.rehearsal.conftest import Rehearsal, container, task

pytestmark = pytest.mark.cloud

_READ = """
from runners.vertex.client import VertexService
service = VertexService("1", "rehearsal")
status = json.loads(values["status"])
job = service.get(status["pipelineJobResourceName"])
other = service.get(status["pipelineJobResourceName"] + "x")
things = {t.name: [a.properties for a in t.outputs.get("thing", ())] for t in job.tasks}
with open(values["file"], "w") as file:
    json.dump(
        {
            "other": other,
            "labels": dict(job.labels),
            "states": {t.name: t.state for t in job.tasks},
            "errors": [t.error for t in job.tasks if t.error],
            "things": things["Make"],
            "in order": all(t.started_at <= t.ended_at for t in job.tasks),
            "spec": job.spec["pipelineSpec"]["pipelineInfo"]["name"],
        },
        file,
    )
"""


def test_an_exit_handler_finds_its_job(rehearsal: Rehearsal) -> None:
    """Found: the region of a rehearsed job told our exit handler to write nothing."""
    path = rehearsal.folder / "found.json"
    status = {"taskFinalStatus": {"producerTask": "tfx-dag"}}
    handler = task(
        container(_READ),
        takes={"status": status, "file": {"componentInputParameter": "file"}},
        triggerPolicy={"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"},
    )
    tasks = {
        "Make": task(container("put('thing', n=3.0)"), makes=("thing",)),
        "Fail": task(container("1/0"), reads={"thing": "Make.thing"}),
        "Then": task(container(""), after=["Fail"]),
        "AtEnd": handler,
    }
    parameters = {"file": {"parameterType": "STRING"}}
    record = rehearsal.run(tasks, parameters=parameters, values={"file": str(path)})
    assert "the exit handler AtEnd ran" in record.notes[-1]
    found = json.loads(path.read_text())
    assert found.pop("errors")[0].startswith("Fail failed")
    assert found == {
        "other": None,
        "labels": {"sluice-pipeline": "tiny", "sluice-run": record.run_id.lower()},
        "states": {"Make": "succeeded", "Fail": "failed"},
        "things": [{"n": 3}],
        "in order": True,
        "spec": "tiny",
    }
