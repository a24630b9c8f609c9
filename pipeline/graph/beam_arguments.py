"""Options of the Beam pipelines inside the nodes: here, on an engine, on Dataflow."""

from __future__ import annotations

from pipeline.config.beam import Beam
from pipeline.config.config import Config
from sluice.beam_options import DATAFLOW_RUNNER, ENGINE_RUNNER, LOCAL_RUNNER

# TFX builds a source archive of itself for every node that has Beam options (1.6 s,
# 40 MB each) unless an image is named; none is used. Of a Transform, dill would take
# 3 s.
_COMMON_ARGS = ("--sdk_container_image=unused", "--pickle_library=cloudpickle")
# Beam's in-process runner, by the class of ours: what `DirectRunner` means depends on
# Beam's version and on whether a Go binary can be downloaded.
LOCAL_BEAM_ARGS = (LOCAL_RUNNER, *_COMMON_ARGS)


def beam_args(beam: Beam) -> tuple[str, ...]:
    """Returns the options for a run of this machine, or on its engine."""
    if beam.engine == "local":
        return LOCAL_BEAM_ARGS
    args = {
        "job_endpoint": beam.job_endpoint,
        "environment_type": "EXTERNAL",
        "environment_config": beam.worker_pool,
    }
    if beam.engine == "flink":
        args["flink_master"] = "[local]" if beam.master == "local" else beam.master
    if beam.workers != "auto":
        args["parallelism"] = str(beam.workers)
    of_engine = (f"--{name}={value}" for name, value in args.items())
    return (ENGINE_RUNNER, *of_engine, *_COMMON_ARGS)


def dataflow_args(config: Config, image: str) -> list[str]:
    """Returns the options for Dataflow.

    Args:
      config: with a section ``cloud``.
      image: of the workers.
    """
    cloud = config.cloud
    assert cloud is not None
    beam = cloud.beam
    options = {
        "project": cloud.project,
        "region": cloud.region,
        "temp_location": f"{config.cloud_dir}/tmp",
        "sdk_container_image": image,
        "service_account_email": cloud.service_account,
        "network": cloud.network and cloud.network.rpartition("/")[2],
        "machine_type": beam.machine_type,
        "num_workers": beam.workers,
        "max_num_workers": beam.max_workers,
        "disk_size_gb": beam.disk_gb,
        "experiments": "use_runner_v2",
    }
    labels = {**cloud.labels, "sluice-pipeline": config.name}
    return [
        DATAFLOW_RUNNER,
        *(f"--{key}={value}" for key, value in options.items() if value is not None),
        *(f"--labels={key}={value}" for key, value in labels.items()),
        *beam.args,
    ]
