"""The modules in each node's code fingerprint: an edit of any other keeps its cache."""

from __future__ import annotations

import pytest

from pipeline.config.load import load_config
from pipeline.graph.custom_nodes import sort_nodes
from sluice.code_fingerprint import modules_of
from sluice.project import own_root

pytestmark = pytest.mark.unit

# Nodes with code of ours; an edit of these modules of `sluice` concerns none of them.
OURS = {
    "TFRecordGen",
    "StatisticsGen",
    "DataVerdict",
    "DataGate",
    "AcceptData",
    "Transform",
    "Trainer",
    "Evaluator",
    "ModelVerdict",
    "Pusher",
}
FOREIGN = {"workspace", "run_lock", "project", "graph", "code_fingerprint"}


@pytest.mark.parametrize("node_id", sorted(OURS))
def test_shared_modules_in_the_code_of_a_node(node_id):
    digits = load_config("digits", cwd=own_root())
    node = next(node for node in sort_nodes(digits) if node.id == node_id)
    found = modules_of(node.modules(digits), [own_root()])
    shared = {name.partition(".")[2] for name in found if name.startswith("sluice.")}

    assert {"errors", "storage.storage", "storage.gcs_storage"} <= shared
    assert not shared & FOREIGN
