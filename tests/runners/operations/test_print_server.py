"""A TensorFlow Serving that fits the model store, for Compose and Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from google.protobuf import text_format

from pipeline.config.load import load_config
from runners.operations.find_run import published_in
from runners.operations.print_server import server_text
from runners.operations.serve import ServeOptions
from sluice.errors import UsageError
from sluice.project import own_root

pytestmark = pytest.mark.unit

OPTIONS = ServeOptions(
    host="0.0.0.0",
    port=80,
    grpc_port=81,
    batch_rows=16,
    batch_delay_ms=2.5,
    max_body_mb=64,
    max_rows=10,
    timeout_s=30.0,
    poll_s=0.5,
    record=0.0,
    record_mb=1,
)
BUCKET = "push.serving_dir=gs://models/digits"


def printed(form: str, *overrides: str, **more: Any) -> Any:
    config = load_config("digits", cwd=own_root(), overrides=overrides)
    return config, [*yaml.safe_load_all(server_text(config, form, OPTIONS, **more))]


def check_files(files: dict[str, str], arguments: list[str], base: str) -> None:
    """Checks the files against the arguments that name them, and their content."""
    from tensorflow_serving.config import model_server_config_pb2

    named = dict(x.removeprefix("--").split("=") for x in arguments if "=" in x)
    assert "--enable_batching" in arguments
    assert named["file_system_poll_wait_seconds"] == "1"
    assert (named["port"], named["rest_api_port"]) == ("8500", "8501")
    models = model_server_config_pb2.ModelServerConfig()
    text_format.Parse(files[named["model_config_file"]], models)
    (model,) = models.model_config_list.config
    assert (model.name, model.base_path) == ("digits", base)
    batching = files[named["batching_parameters_file"]].split("\n")
    assert batching[:2] == [
        "max_batch_size { value: 16 }",
        "batch_timeout_micros { value: 2500 }",
    ]
    assert "enable: true" in files[named["monitoring_config_file"]]


def test_compose_mounts_the_store_for_reading():
    config, (found,) = printed("compose", "serving_check.server=2.16.1")
    (service,) = found["services"].values()
    files = {
        item["target"]: found["configs"][item["source"]]["content"]
        for item in service["configs"]
    }
    check_files(files, service["command"], "/models/digits")
    assert service["image"] == "tensorflow/serving:2.16.1"
    assert service["volumes"] == [f"{published_in(config)}:/models/digits:ro"]
    assert service["ports"] == ["0.0.0.0:80:8501", "0.0.0.0:81:8500"]
    assert r"GET /v1/models/digits HTTP/1.0\r\n" in service["healthcheck"]["test"][3]


def test_kubernetes_has_probes_and_the_volume_of_the_project():
    config, (files, deployment, service) = printed("kubernetes", claim="shared")
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    config_mount, store = container["volumeMounts"]
    folder = config_mount["mountPath"]
    of_path = {f"{folder}/{name}": text for name, text in files["data"].items()}
    check_files(of_path, container["args"], store["mountPath"])
    assert f"{config.root}/{store['subPath']}" == published_in(config)
    assert store["readOnly"] is True
    named = {volume.pop("name"): volume for volume in pod["spec"]["volumes"]}
    claim = {"persistentVolumeClaim": {"claimName": "shared"}}
    assert named == {
        "config": {"configMap": {"name": "digits-serving"}},
        "store": claim,
    }
    probe = {"path": "/v1/models/digits", "port": "rest"}
    assert container["readinessProbe"]["httpGet"] == probe
    labels = pod["metadata"]["labels"]
    assert labels == deployment["spec"]["selector"]["matchLabels"]
    assert labels == service["spec"]["selector"]


def test_a_store_in_a_bucket_is_read_there():
    _, (found,) = printed("compose", BUCKET)
    assert found["services"]["digits"]["volumes"] == []
    _, (files, deployment, _) = printed("kubernetes", BUCKET, image="own:1")
    assert 'base_path: "gs://models/digits"' in files["data"]["models.pbtxt"]
    (volume,) = deployment["spec"]["template"]["spec"]["volumes"]
    assert volume["name"] == "config"


@pytest.mark.parametrize(
    ("overrides", "claim", "text"),
    [
        ((), None, "needs the volume"),
        (("push.serving_dir=/srv/models",), "shared", "not in the project's folder"),
    ],
)
def test_a_store_that_a_pod_would_not_see_is_refused(overrides, claim, text):
    with pytest.raises(UsageError, match=text):
        printed("kubernetes", *overrides, claim=claim)
