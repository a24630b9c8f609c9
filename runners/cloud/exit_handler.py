"""The exit handler ``WriteReport``: the record and page of a run in its bucket.

A task of the compiled pipeline that runs at the end, however the others have ended. The
service gives it the job's name only; the rest is read from the service. ``run.json`` is
what ``sluice status`` makes of the same job, with the documents of all artifacts, which
a laptop would have to download.

Only Vertex AI has exit handlers. Not in the graph of a run: it draws the run.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from tfx.dsl.component.experimental.annotations import Parameter
from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration.kubeflow.decorators import FinalStatusStr, exit_handler

from pipeline.config.config import Config
from pipeline.config.serialize import read_stored_config, stored_config
from runners.cloud.refresh import begin_run, log_reader, record_uri_of, run_id_of
from runners.cloud.service_run import record_of
from runners.cloud.spec import Task
from runners.cloud.submitted_job import save_job
from runners.cloud.vertex_client import VertexService
from runners.documents.write import write_documents
from runners.local.write_report import write_report
from sluice.clock import utc_now
from sluice.errors import RemoteError
from sluice.record.parts import NodeEnd
from sluice.record.run_record import RECORD_FILE
from sluice.secrets import remember
from sluice.storage.storage import storage_for


@exit_handler
def WriteReport(  # noqa: D103
    final_status: Parameter[str], config: Parameter[str]
):
    print(write_record(json.loads(final_status), json.loads(config)))


def make_exit_handler(config: Config) -> BaseNode:
    """Returns the exit handler of a pipeline."""
    # Not where it is on this machine, line by line: that is half of the text.
    stored = stored_config(config)
    text = json.dumps({**stored, "root": ".", "locations": []})
    return WriteReport(final_status=FinalStatusStr(), config=text)


def write_record(final_status: dict[str, Any], stored: dict[str, Any]) -> str:
    """Writes the record of a job whose tasks have ended, and returns where.

    ``run.json`` is written last.

    Args:
      final_status: KFP's ``PipelineTaskFinalStatus`` of all other tasks.
      stored: the config, see ``stored_config``.

    Raises:
      RemoteError: the service does not know the job, or does not answer.
      OSError: the bucket cannot be written.
    """
    remember(json.dumps(stored))
    name = str(final_status["pipelineJobResourceName"])
    _, project, _, region, *_ = name.split("/")
    service = VertexService(project, region)
    job = service.get(name)
    if job is None:
        raise RemoteError("the service does not know the job", where=name)
    # The job itself ends after this task.
    state = final_status.get("state")
    state = state if state in ("SUCCEEDED", "CANCELLED") else "FAILED"
    job = {
        **job,
        "state": f"PIPELINE_STATE_{state}",
        "endTime": utc_now("microseconds"),
        "error": final_status.get("error") or {},
    }
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / run_id_of(job)
        record = begin_run(run_dir, stored, job)
        config = read_stored_config(run_dir / "config.json")
        save_job(run_dir, name, service.page(name))

        def describe(task: Task, end: NodeEnd) -> None:
            if not task.kind.resolver:
                write_documents(end, run_dir, run_dir / "documents", task.parameters)

        record_of(record, job, log_reader(run_dir, service, name), describe)
        record.save(run_dir)
        write_report(record, run_dir)
        target = record_uri_of(config, record.run_id)
        storage = storage_for(target)
        files = [path for path in run_dir.rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: (path.name == RECORD_FILE, path)):
            name = path.relative_to(run_dir).as_posix()
            storage.write_atomically(f"{target}/{name}", path.read_bytes())
    return target
