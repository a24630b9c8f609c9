"""Config section ``beam``: how a local run divides the work on its data."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import model_validator

from sluice.config_section import Count, Section, Text, matching, refuse

_Endpoint = Annotated[
    Text, matching(r"[^\s:/]+:\d{1,5}", "a host and a port, such as 10.0.0.5:8081")
]
_Master = Annotated[
    Text,
    matching(r"local|[^\s:/]+:\d{1,5}", "local, or HOST:PORT of Flink's job manager"),
]


class Beam(Section):
    """Where a local run works on the data, and in how many processes.

    The steps are the ingestion, the statistics, Transform and Evaluator. Their results
    do not depend on it. What an engine runs is in [cluster.md](cluster.md).
    """

    engine: Literal["local", "flink", "portable"] = "local"
    """Processes of this machine, Flink, or any engine with a job server of Beam."""
    workers: Literal["auto"] | Count = "auto"
    """Processes of each step, or parallel tasks of the engine. auto: one per core, or
    as the engine is set up; where data is small, Transform and Evaluator stay in one
    process, and all steps on this machine, which is faster then. With fewer, a step
    needs less memory."""
    master: _Master = "local"
    """Flink's job manager. local: a Flink inside of the job server."""
    job_endpoint: _Endpoint = "127.0.0.1:8099"
    """The engine's job server."""
    worker_pool: _Endpoint = "127.0.0.1:50000"
    """The worker pool, `sluice beam-workers`, as each machine of the engine reaches
    its own."""

    @model_validator(mode="after")
    def _fits_engine(self) -> Any:
        if self.engine != "flink" and self.master != "local":
            refuse("only engine: flink has a master", "master")
        return self
