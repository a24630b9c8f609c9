"""Options of the Beam pipelines inside the nodes: in-process, or on Dataflow."""

from __future__ import annotations

from pipeline.config.config import Config
from pipeline.graph.locations import LOCAL_BEAM_ARGS
from runners.cloud.image import image_of_beam

# The first option of a node on Dataflow.
DATAFLOW = "--runner=DataflowRunner"


def beam_args(config: Config, node_id: str) -> list[str]:
    """Returns the Beam options of a node.

    In the node's own process they are those of local runs: what Beam's default runner
    is depends on its version, and on what can be downloaded.
    """
    cloud = config.cloud
    assert cloud is not None
    beam = cloud.beam
    named = beam.nodes is None or node_id in beam.nodes
    if beam.runner == "direct" or not named:
        return [*LOCAL_BEAM_ARGS, *(beam.args if beam.runner == "direct" else ())]
    options = {
        "project": cloud.project,
        "region": cloud.region,
        "temp_location": f"{config.cloud_dir}/tmp",
        "sdk_container_image": image_of_beam(config),
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
        DATAFLOW,
        *(f"--{key}={value}" for key, value in options.items() if value is not None),
        *(f"--labels={key}={value}" for key, value in labels.items()),
        *beam.args,
    ]
