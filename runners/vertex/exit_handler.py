"""The exit handler ``WriteReport``: the record and page of a run in its bucket.

A task of the compiled pipeline that runs at the end, however the others have ended. The
service gives it the job's name only; ``write_record`` reads the rest from the service.
Only Vertex AI has exit handlers. Not in the graph of a run: it draws the run.
"""

# TFX reads the annotations of a component's function: they must be no strings.

import json

from tfx.dsl.component.experimental.annotations import Parameter
from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration.kubeflow.decorators import FinalStatusStr, exit_handler

from pipeline.config.config import Config
from pipeline.config.serialize import stored_config


@exit_handler
def WriteReport(  # noqa: D103
    final_status: Parameter[str], config: Parameter[str]
):
    from runners.vertex.write_record import write_record

    print(write_record(json.loads(final_status), json.loads(config)))


def make_exit_handler(config: Config) -> BaseNode:
    """Returns the exit handler of a pipeline."""
    # Not where it is on this machine, line by line: that is half of the text.
    stored = stored_config(config)
    text = json.dumps({**stored, "root": ".", "locations": []})
    return WriteReport(final_status=FinalStatusStr(), config=text)
