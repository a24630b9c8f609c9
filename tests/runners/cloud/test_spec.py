"""Jobs that are not read; the golden specs and the rehearsal read those of TFX."""

import pytest

from runners.cloud.spec import read_spec
from sluice.errors import ConfigError
from tests.runners.cloud.small_job import small_job

pytestmark = pytest.mark.unit


def tasks_of(job):
    return job["pipelineSpec"]["components"]["tfx-dag"]["dag"]["tasks"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda job: job.pop("pipelineSpec"), "pipelineSpec"),
        (lambda job: job["pipelineSpec"].update(invented=1), "invented"),
        (lambda job: tasks_of(job).pop("DataVerdict"), "DataVerdict"),
    ],
    ids=["no pipeline", "an unknown field", "a missing task"],
)
def test_what_is_no_pipeline_of_kfp_is_refused(change, message):
    job = small_job()
    change(job)
    with pytest.raises(ConfigError, match=message):
        read_spec(job)
