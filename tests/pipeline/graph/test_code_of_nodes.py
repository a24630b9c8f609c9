"""The modules in each node's code fingerprint: an edit of any other keeps its cache."""

from __future__ import annotations

import pytest

from pipeline.config.config import Config
from pipeline.config.load import load_config
from pipeline.graph.custom_nodes import sort_nodes
from sluice.code_fingerprint import modules_of
from sluice.project import own_root
from sluice.storage.storage import remote_modules

pytestmark = pytest.mark.unit

LOCAL = {
    "errors",
    "printable",
    "storage.atomic",
    "storage.local_storage",
    "storage.storage",
    "storage.storage_errors",
}
ARTIFACTS = {*LOCAL, "record.verdict"}
CONFIG = {"config_section", "storage.output_path"}
# The modules of `sluice` by node, without their packages' `__init__`.
SHARED = {
    "TFRecordGen": {
        *ARTIFACTS,
        *CONFIG,
        "clock",
        "machine_resources",
        "run_forked",
        "splits",
        "storage.digest",
        "storage.file_pattern",
        "storage.stat_cache",
        "tfrecords",
    },
    "DataVerdict": {
        *ARTIFACTS,
        *CONFIG,
        "record.json_number",
        "splits",
        "storage.digest",
        "tfrecords",
    },
    "DataGate": {*ARTIFACTS, "splits"},
    "AcceptData": {*ARTIFACTS, "clock", "splits", "storage.digest", "tfrecords"},
    "Trainer": {
        *LOCAL,
        "compat",
        "interrupt",
        "machine_resources",
        "process_tree",
        "progress",
        "secrets",
        "storage.digest",
        "storage.local_copy",
        "tfrecords",
    },
    "Evaluator": {*ARTIFACTS, *CONFIG, "storage.digest", "tfrecords"},
    "ModelVerdict": {
        *ARTIFACTS,
        *CONFIG,
        "mlmd_items",
        "node_kinds",
        "storage.contents",
        "storage.digest",
    },
    "Pusher": {
        *ARTIFACTS,
        "google_errors",
        "mlmd_items",
        "secrets",
        "storage.contents",
        "storage.local_copy",
        "storage.output_path",
        "storage.digest",
        "vertex_ai",
    },
}


@pytest.fixture
def digits() -> Config:
    return load_config("digits", cwd=own_root())


@pytest.mark.parametrize("node_id", SHARED)
def test_shared_modules_in_the_code_of_a_node(digits: Config, node_id: str) -> None:
    node = next(node for node in sort_nodes(digits) if node.id == node_id)
    found = modules_of(node.all_code(digits), [own_root()])
    shared = {
        "tfrecords" if name.startswith("sluice.tfrecords.") else name[len("sluice.") :]
        for name, path in found.items()
        if name.startswith("sluice.") and path.name != "__init__.py"
    }
    assert shared == SHARED[node_id]


def test_the_other_nodes_have_no_shared_code(digits: Config) -> None:
    for node in sort_nodes(digits):
        if node.id not in SHARED:
            found = modules_of(node.all_code(digits), [own_root()])
            assert not [name for name in found if name.startswith("sluice")]


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("train='data/*.tfrecord'", []),
        ("train='gs://bucket/*' eval='gs://other/*'", ["gcs_storage"]),
        ("'s3://bucket/a' 'gs://bucket/b'", ["fileio_storage", "gcs_storage"]),
    ],
)
def test_modules_of_remote_addresses(text: str, modules: list[str]) -> None:
    assert remote_modules(text) == [f"sluice.storage.{name}" for name in modules]
