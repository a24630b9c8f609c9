"""Every node starts from only the files that an image gets."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from pipeline.config.load import load_config
from pipeline.graph.custom_nodes import modules_of
from runners.cloud.image import image_of
from sluice.compat import child_environment
from sluice.project import own_root

pytestmark = [pytest.mark.tf, pytest.mark.acceptance]

# Calls the command line of each node, as the service does, in one process: importing
# TFX takes 20 s. Without inputs each executor fails, after it has been started.
START_NODES = """
import importlib, json, runpy, sys

# Not the checkout, where an editable installation finds its packages.
sys.meta_path[:] = [x for x in sys.meta_path if "editable" not in repr(x)]
from pipeline.graph.node_registry import NODES

failed = {}
for node in NODES:
    module, _, name = node.component.partition(":")
    component = getattr(importlib.import_module(module), name)
    if not hasattr(component, "EXECUTOR_SPEC"):  # A resolver runs in the service.
        continue
    sys.argv = [
        "kubeflow_v2_run_executor",
        "--executor_class_path", component.EXECUTOR_SPEC.class_path,
        "--json_serialized_invocation_args", "{}",
    ]
    try:
        runpy.run_module(
            "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor",
            run_name="__main__",
        )
    except (Exception, SystemExit) as error:
        # There are two of the name Pusher.
        failed[f"{node.id} {len(failed)}"] = f"{type(error).__name__}: {error}"
for module in json.loads(sys.stdin.read()):
    importlib.import_module(module)
assert "pytest" not in sys.modules
print(json.dumps(failed))
"""


def test_every_node_starts_from_the_files_of_the_image(tmp_path):
    """The packages are those of this environment, which has the same lock."""
    image_of(own_root()).write_context(tmp_path / "context")
    modules = {
        module
        for name in ("digits", "taxi", "flowers")
        for module in modules_of(load_config(name, cwd=own_root()))
    }
    modules.add("components.kubeflow_entrypoint")
    environment = {**os.environ, **child_environment(), "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", START_NODES],
        cwd=tmp_path / "context",
        env=environment,
        input=json.dumps(sorted(modules)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    failed = json.loads(done.stdout.splitlines()[-1])
    assert done.stderr.count("Starting executor") == len(failed) > 10, failed
    assert not [text for text in failed.values() if "Import" in text], failed
