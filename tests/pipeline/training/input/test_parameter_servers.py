"""A training with parameter servers, and workers in processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from sluice.project import own_root
from sluice.tfrecords import tfrecord
from tests.kit.analysis import analyze, serialize
from tests.kit.trainings import feature_set
from tests.kit.wait import DEADLINE_S

pytestmark = [pytest.mark.tf, pytest.mark.acceptance]

# With workers in processes, whose vocabularies must not be in this one.
TRAIN = """
import sys
from sluice.compat import prepare_environment
prepare_environment()
from pipeline.config.features import FeatureSet
from pipeline.training import run_fn as training
from tests.kit.trainings import fn_args

folder, features = sys.argv[1:]
training.export_model = lambda *a, **k: None
cluster = {"strategy": "parameter_server", "processes": 2, "parameter_servers": 1}
given = fn_args(
    {"epochs": 8, "batch_size": 8, "learning_rate": 0.05, **cluster},
    FeatureSet.model_validate_json(features),
    "pipeline.training.models.dense:build_model",
    folder,
    folder,
)
given.transform_graph_path = folder + "/out"
training.run_fn(given)
print(open(folder + "/run/history.json").read().replace("\\n", ""))
"""


def _output_of(script: str, *arguments: str) -> Any:
    command = [sys.executable, "-c", script, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(own_root())}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_workers_in_processes_have_the_vocabularies(tmp_path):
    """Workers that look words up in the coordinator wait for it, and it for them."""
    import tensorflow as tf

    features = feature_set({"word": {"kind": "vocabulary", "oov_buckets": 1}})
    spec = {
        "word": tf.io.VarLenFeature(tf.string),
        "y": tf.io.FixedLenFeature([1], tf.int64),
    }
    rows = [{"word": [b"%d" % (i % 4)], "y": [i % 2]} for i in range(48)]
    analyze(rows, spec, features, tmp_path)
    for split in ("train", "eval"):
        tfrecord.write(tmp_path / f"{split}.gz", serialize(rows))
    history = _output_of(TRAIN, str(tmp_path), features.model_dump_json(warnings=False))
    assert history["val_binary_accuracy"][-1] == 1
