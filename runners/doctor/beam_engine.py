"""The Beam runner that the nodes of a local run use."""

from __future__ import annotations

from pipeline.graph.locations import LOCAL_BEAM_ARGS
from runners.doctor.check import Check
from sluice.workspace import installed_version


def check_beam_engine() -> Check:
    """Returns Beam's version and the runner that local pipelines name."""
    version = installed_version("apache-beam")
    if version is None:
        return Check("beam", "problem", "apache-beam is not installed", "make setup")
    runners = [
        argument.removeprefix("--runner=")
        for argument in LOCAL_BEAM_ARGS
        if argument.startswith("--runner=")
    ]
    found = f"{version}, in the node's process: {', '.join(runners)}"
    return Check("beam", "ok", found)
