"""The node ServingCheck: its blessing, its copy of the model, and its process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from components.serving_check.settings import Settings
from serving.local_store import LocalModelStore
from sluice.project import own_root
from sluice.record.verdict import Verdict
from sluice.tfrecords import tfrecord
from tests.kit.exported_models import write_examples
from tests.kit.served_models import COLORS, describe, records, save
from tests.kit.wait import is_gone, wait_for

pytestmark = pytest.mark.tf

WARM_UP = "assets.extra/tf_serving_warmup_requests"
Node = Callable[..., Any]


@pytest.fixture
def node(tmp_path: Path, fast_servers: None) -> Node:
    """Runs the executor; returns its blessing, verdict and copy of the model."""
    from tfx.types import standard_artifacts

    from components import artifacts
    from components.serving_check.component import Executor

    def run(model_dir: Path, exported: Any = None, **settings: Any) -> Any:
        model, examples = standard_artifacts.Model(), standard_artifacts.Examples()
        blessing, check = standard_artifacts.InfraBlessing(), artifacts.ServingCheck()
        model.uri = str(model_dir.parent)
        check.uri, blessing.uri = str(tmp_path / "check"), str(tmp_path / "blessing")
        examples.uri = write_examples(tmp_path / "examples", test=records()).uri
        given = {"split": "test", "hidden": ("y",), "batch": 4, **settings}
        inputs = {"model": [model], "examples": [examples]}
        Executor().Do(
            inputs | ({"exported": [exported]} if exported else {}),
            {"blessing": [blessing], "check": [check]},
            {"settings": Settings.model_validate(given).model_dump_json()},
        )
        copy = Path(blessing.uri, "stamped_model")
        return blessing, Verdict.load(check.uri), copy

    return run


@pytest.fixture
def exported(tmp_path: Path, good: Path) -> Callable[..., Any]:
    """Makes the blessing of Exports, with its copy of the model if that was blessed."""
    from tfx.types import standard_artifacts

    def make(*, blessed: int, has_model: int) -> Any:
        artifact = standard_artifacts.InfraBlessing()
        artifact.uri = str(tmp_path / "exported")
        artifact.set_int_custom_property("blessed", blessed)
        artifact.set_int_custom_property("has_model", has_model)
        copy = tmp_path / "exported" / "stamped_model"
        shutil.copytree(good, copy)
        (copy / "assets.extra" / "exports").mkdir()
        (copy / "assets.extra" / "exports" / "model.tflite").write_bytes(b"lite")
        return artifact

    return make


def facts_of(blessing: Any) -> tuple[int, int, str]:
    return (
        blessing.get_int_custom_property("blessed"),
        blessing.get_int_custom_property("has_model"),
        blessing.get_string_custom_property("refused_by"),
    )


def test_the_copy_has_the_requests_and_is_the_same_each_time(node, good, tmp_path):
    blessing, verdict, copy = node(good)
    assert verdict.passed and facts_of(blessing) == (1, 1, "")
    first = (copy / WARM_UP).read_bytes()
    assert not (good / WARM_UP).exists()
    for folder in (tmp_path / "examples", copy):
        shutil.rmtree(folder)
    _, _, copy = node(good, max_p99_ms=1e6)
    assert (copy / WARM_UP).read_bytes() == first


def test_no_value_of_a_private_record_is_written(node, tmp_path):
    secret = "string: one"

    def fails(outputs: dict[str, Any], raw: dict[str, Any]) -> dict[str, Any]:
        import tensorflow as tf

        known = tf.strings.to_number(raw["text"])  # Its error has the text.
        return {**outputs, "probabilities": outputs["probabilities"] + known[:, None]}

    model = save(tmp_path / "bad" / "Format-Serving", fails)
    blessing, verdict, copy = node(model, is_private=True)
    assert facts_of(blessing)[0] == 0 and "HTTP 400" in verdict.causes[0]
    assert "one" not in verdict.to_json()
    for folder in (tmp_path / "examples", copy):
        shutil.rmtree(folder)
    assert secret in node(model)[1].causes[0]

    good = save(tmp_path / "good" / "Format-Serving")
    for folder in (tmp_path / "examples", copy):
        shutil.rmtree(folder)
    blessing, verdict, copy = node(good, is_private=True)
    assert facts_of(blessing) == (1, 1, "") and not (copy / WARM_UP).exists()


def test_the_copy_of_exports_is_checked_and_handed_on(node, exported, good):
    blessing, verdict, copy = node(good, exported(blessed=1, has_model=1))
    assert verdict.passed and facts_of(blessing) == (1, 1, "")
    assert (copy / "assets.extra" / "exports" / "model.tflite").exists()
    assert (copy / WARM_UP).exists()


def test_a_damaged_copy_of_exports_is_held_back(node, exported, good, tmp_path):
    blessed = exported(blessed=1, has_model=1)
    describe(tmp_path / "exported" / "stamped_model", classes=[*COLORS[:2]])
    blessing, verdict, _ = node(good, blessed)
    assert facts_of(blessing)[0] == 0 and not verdict.passed


@pytest.mark.parametrize(
    ("blessed", "has_model", "facts"),
    [(0, 1, (0, 0, "Exports")), (1, 0, (1, 0, ""))],
)
def test_a_model_without_exports_is_not_asked(
    node, exported, good, blessed, has_model, facts
):
    blessing, verdict, _ = node(good, exported(blessed=blessed, has_model=has_model))
    assert verdict.passed and facts_of(blessing) == facts
    assert [row.check for row in verdict.rows] == ["serving check"]


_NODE = """
import sys, time
from pathlib import Path
from components.serving_check.model_server import ModelServer
server = ModelServer(Path(sys.argv[1]), 60.0, quiet=True)
print(server._process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.fault
def test_the_process_knows_no_project_and_ends_with_a_killed_node(good, tmp_path):
    (tmp_path / "my_layers.py").write_text("")
    own = {"PYTHONPATH": os.pathsep.join([str(own_root()), str(tmp_path)])}
    command = [sys.executable, "-c", _NODE, str(good)]
    with subprocess.Popen(
        command, env={**os.environ, **own}, stdout=subprocess.PIPE, cwd=tmp_path
    ) as started:
        assert started.stdout is not None
        server = psutil.Process(int(started.stdout.readline()))
        wait_for(lambda: "--model" in server.cmdline())
        assert server.environ()["PYTHONPATH"] == str(own_root())
        assert os.listdir(server.cwd()) == []
        started.send_signal(signal.SIGKILL)
    wait_for(lambda: is_gone(server.pid), timeout_s=10.0)


def test_predictions_are_kept_beside_those_that_the_version_answered(
    node, good, tmp_path
):
    import numpy as np
    from tensorflow_serving.apis.model_pb2 import ModelSpec

    from components.retrain_decision.component import _served
    from schemas.data_statistics import features_of
    from serving.prediction_logs import logs_of

    blessing, _, copy = node(good, keeps_predictions=True)
    kept = blessing.get_string_custom_property("predictions")
    store = LocalModelStore(tmp_path / "store")
    store.publish(copy, facts={"predictions": kept})
    logs: list[bytes] = []
    for version, index, count in ((2, 1, 4), (1, 0, 3), (1, 2, 5)):
        spec = ModelSpec()
        spec.version.value = version
        outputs = {
            "probabilities": np.eye(3, dtype="f")[[index] * count],
            "label": np.array([[COLORS[index].encode()]] * count, object),
        }
        logs += logs_of(spec, [b""] * count, outputs, 0.0)
    for day in ("2020-01-01", "9999-01-01"):
        (tmp_path / "requests" / day).mkdir(parents=True)
        path = tmp_path / "requests" / day / "1.tfrecord.gz"
        tfrecord.write(path, logs)

    requests = str(tmp_path / "requests")
    served = _served(store.uri, str(tmp_path / "accepted"), requests, ["ids"])

    assert served and served.predictions
    # What it takes, but what requests are recorded without.
    assert {*served.takes} == {"a", "text"}
    recorded, judged = (features_of(x)["prediction"] for x in served.predictions)
    buckets = recorded.string_stats.rank_histogram.buckets
    assert {x.label: x.sample_count for x in buckets} == {COLORS[0]: 3, COLORS[2]: 5}
    assert judged.string_stats.common_stats.num_non_missing == len(records())
