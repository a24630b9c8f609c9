"""Pushes to Vertex AI's registry and to an endpoint, with Google's own client."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from components.pusher import vertex_client
from components.pusher.vertex_push import (
    Endpoint,
    Registered,
    Registry,
    VertexPush,
    new_split,
    resource_id,
)
from pipeline.config.load import load_config
from runners.cloud.push_destinations import push_destinations
from serving.model_store import Publication
from sluice import secrets
from sluice.errors import RemoteError, UsageError
from sluice.vertex_ai import Backoff

pytestmark = pytest.mark.cloud

IMAGE = "europe-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"
REGISTRY = Registry("Digits", IMAGE, "my-project", "europe-west4", {"team": "mail"})
ENDPOINT = Endpoint("Digits", "n1-standard-2")
PARENT = "projects/my-project/locations/europe-west4"
MODEL = f"{PARENT}/models/digits"
LOST, CUT = -1, 0


@pytest.fixture
def vertex(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from fake_vertex_models import FakeVertexModels

    fake = FakeVertexModels()
    address = fake.address()
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM", address)
    monkeypatch.setattr(vertex_client, "_POLL_S", 0.02)
    quick = Backoff(first_s=0.01, longest_s=0.02, total_s=30)
    monkeypatch.setattr(vertex_client, "BACKOFF", quick)
    yield fake
    fake.close()


def _publication(version: int, digest: str = "") -> Publication:
    digest = digest or f"{version:064x}"[::-1]
    return Publication(version, "pushed", f"gs://b/serving/{version}", digest)


def _register(version: int, digest: str = "") -> Registered:
    return VertexPush(REGISTRY).register(_publication(version, digest), "run-1")


def _deploy(version: int, endpoint: Endpoint = ENDPOINT) -> str:
    push = VertexPush(REGISTRY)
    return push.deploy(push.register(_publication(version), "run-1"), endpoint)


def test_each_push_is_a_version_of_one_model(vertex: Any) -> None:
    assert _register(1) == Registered(MODEL, "1")
    assert _register(2) == Registered(MODEL, "2")

    first, second = vertex.versions()
    assert first["artifactUri"] == "gs://b/serving/1"
    assert first["containerSpec"] == {"imageUri": IMAGE}
    assert first["labels"] == {"team": "mail", "sluice_digest": f"{1:064x}"[::-1][:63]}
    assert "run-1" in first["versionDescription"]
    assert (first["versionAliases"], second["versionAliases"]) == (
        ["v1"],
        ["default", "v2"],
    )


def test_a_model_is_not_registered_twice(vertex: Any) -> None:
    _register(1)
    again = _register(5, digest=_publication(1).digest)

    assert again == Registered(MODEL, "1")
    assert len(vertex.versions()) == 1


def test_a_model_of_that_name_is_used(vertex: Any) -> None:
    """One that was made in the console has a number as its id."""
    from google.cloud import aiplatform_v1

    push = VertexPush(REGISTRY)
    model = aiplatform_v1.Model(
        display_name="Digits",
        artifact_uri="gs://b/x",
        container_spec={"image_uri": IMAGE},
    )
    push._client.models.upload_model(parent=PARENT, model=model)

    registered = push.register(_publication(1), None)
    assert registered.version_id == "2"
    assert re.fullmatch(rf"{PARENT}/models/\d+", registered.model)


@pytest.mark.parametrize("status", [503, 429, CUT, LOST])
@pytest.mark.parametrize("earlier", [0, 1])
def test_an_upload_or_its_answer_is_lost(
    vertex: Any, status: int, earlier: int
) -> None:
    for version in range(earlier):
        _register(version + 1)
    vertex.fail("POST", "models:upload", status)

    assert _register(7).version_id == str(earlier + 1)

    assert len(vertex.versions()) == earlier + 1


def test_a_version_that_is_listed_late_is_deleted_again(vertex: Any) -> None:
    """The answer is lost, and the list does not have the version yet."""
    _register(1)
    vertex.hidden_versions = 1
    vertex.fail("POST", "models:upload", LOST)

    assert _register(2) == Registered(MODEL, "2")

    assert [item["versionId"] for item in vertex.versions()] == ["1", "2"]
    assert vertex.versions()[1]["versionAliases"] == ["default", "v2"]


def test_traffic_moves_when_the_version_is_ready(vertex: Any) -> None:
    name = _deploy(1)
    assert name == f"{PARENT}/endpoints/digits"
    assert vertex.served() == {"1": 100}
    vertex.requests()

    assert _deploy(2) == name

    assert vertex.served() == {"2": 100}
    (endpoint,) = vertex.endpoints()
    assert [item["modelVersionId"] for item in endpoint["deployedModels"]] == ["2"]
    changes = [r for r in vertex.requests() if " GET " not in r]
    expected = ["models:upload", ":deployModel", "updateMask=", ":undeployModel"]
    assert len(changes) == len(expected)
    assert all(map(str.__contains__, changes, expected)), changes


def test_a_version_that_does_not_start_leaves_the_previous_one(vertex: Any) -> None:
    _deploy(1)
    vertex.broken_images.add(IMAGE)

    with pytest.raises(RemoteError, match="still served") as failed:
        _deploy(2)

    assert "Model server exited unexpectedly" in str(failed.value.actual)
    assert vertex.served() == {"1": 100}
    vertex.broken_images.clear()
    _deploy(2)
    assert vertex.served() == {"2": 100}
    assert len(vertex.versions()) == 2


@pytest.mark.parametrize("status", [503, LOST])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", r"endpoints\?"),
        ("POST", ":deployModel"),
        ("PATCH", "endpoints/digits"),
        ("POST", ":undeployModel"),
        ("GET", "operations/"),
    ],
)
def test_a_request_of_a_deployment_or_its_answer_is_lost(
    vertex: Any, method: str, path: str, status: int
) -> None:
    _register(1)
    if path != r"endpoints\?":
        _deploy(1)
    vertex.fail(method, path, status)

    _deploy(2)

    assert vertex.served() == {"2": 100}
    (endpoint,) = vertex.endpoints()
    assert len(endpoint["deployedModels"]) == 1
    assert vertex.deployments.count("2") == 1


def test_a_killed_push_goes_on_where_it_was(vertex: Any) -> None:
    """It was killed between the deployment and the traffic."""
    _deploy(1)
    vertex.fail("PATCH", "endpoints/digits", 403, times=1)
    with pytest.raises(RemoteError, match="still served") as failed:
        _deploy(2)
    assert "roles/aiplatform.user" in str(failed.value.hint)
    assert vertex.served() == {"1": 100}

    _deploy(2)

    assert vertex.served() == {"2": 100}
    assert vertex.deployments == ["1", "2"]


def test_a_part_of_the_traffic(vertex: Any) -> None:
    tenth = Endpoint("Digits", "n1-standard-2", traffic_percent=10)
    _deploy(1, tenth)
    assert vertex.served() == {"1": 100}
    _deploy(2, tenth)
    assert vertex.served() == {"1": 90, "2": 10}
    _deploy(2)  # Already there: its share stays as somebody may have set it since.
    assert vertex.served() == {"1": 90, "2": 10}
    _deploy(3)
    assert vertex.served() == {"3": 100}


def test_accelerators_and_replicas(vertex: Any) -> None:
    gpu = {"type": "NVIDIA_TESLA_T4", "count": 1}
    _deploy(1, Endpoint("Digits", "n1-standard-8", gpu, 2, 4))

    (endpoint,) = vertex.endpoints()
    (deployed,) = endpoint["deployedModels"]
    resources = deployed["dedicatedResources"]
    assert (resources["minReplicaCount"], resources["maxReplicaCount"]) == (2, 4)
    assert resources["machineSpec"]["acceleratorType"] == "NVIDIA_TESLA_T4"


def test_models_of_others_stay_at_the_endpoint(vertex: Any) -> None:
    other = VertexPush(Registry("Other", IMAGE, "my-project", "europe-west4"))
    theirs = other.register(_publication(9), None)
    other.deploy(theirs, ENDPOINT)

    _deploy(1)

    (endpoint,) = vertex.endpoints()
    models = [item["model"] for item in endpoint["deployedModels"]]
    assert models == [f"{PARENT}/models/other@1", f"{MODEL}@1"]


def test_a_refused_upload_is_explained(vertex: Any) -> None:
    vertex.fail("POST", "models:upload", 403, "Permission denied", times=9)
    with pytest.raises(RemoteError, match="pushed, but not registered") as failed:
        _register(1)
    assert failed.value.where == "project my-project, region europe-west4"
    assert "roles/aiplatform.user" in str(failed.value.hint)


def test_a_secret_in_an_answer_is_written_nowhere(
    vertex: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is in the node's log, the record and the page."""
    secret = "planted-5ecret-v4lue"
    monkeypatch.setattr(secrets, "_resolved", {})
    monkeypatch.setenv("SLUICE_TEST_TOKEN", secret)
    secrets.remember("${env:SLUICE_TEST_TOKEN}")
    vertex.fail("POST", "models:upload", 400, f"the label {secret} is not valid")
    with pytest.raises(RemoteError, match="pushed, but not registered") as failed:
        _register(1)
    assert "the label ${env:SLUICE_TEST_TOKEN} is not" in str(failed.value.actual)
    _deploy(2)
    sent = b"".join(vertex.bodies())
    assert b"gs://b/serving/2" in sent and secret.encode() not in sent


def test_an_expired_token_is_explained(vertex: Any) -> None:
    vertex.tokens = {"fresh"}
    with pytest.raises(RemoteError, match="pushed, but not registered") as failed:
        _register(1)
    assert "gcloud auth application-default login" in str(failed.value.hint)


def test_the_config_names_registry_and_endpoint() -> None:
    given = [
        "cloud.project=my-project",
        "cloud.region=europe-west4",
        f"cloud.push.registry.serving_image={IMAGE}",
        "cloud.push.endpoint.accelerator.type=NVIDIA_TESLA_T4",
    ]
    config = load_config("digits", profile="vertex", overrides=given)
    found = push_destinations(config)

    registry, endpoint = Registry(**found["registry"]), Endpoint(**found["endpoint"])

    assert (registry.model, registry.serving_image) == ("digits", IMAGE)
    assert endpoint.accelerator == {"type": "NVIDIA_TESLA_T4", "count": 1}


def test_a_store_on_this_machine_cannot_be_registered(vertex: Any) -> None:
    local = Publication(1, "pushed", "/models/1", "d" * 64)
    with pytest.raises(UsageError, match="from a bucket only"):
        VertexPush(REGISTRY).register(local, None)
    assert vertex.requests() == []


@pytest.mark.parametrize(
    ("old", "percent", "expected"),
    [
        ({}, 10, {"n": 100}),
        ({"a": 100}, 100, {"n": 100}),
        ({"a": 100}, 10, {"n": 10, "a": 90}),
        ({"a": 50, "b": 50}, 33, {"n": 33, "a": 34, "b": 33}),
        ({"a": 99, "b": 1}, 50, {"n": 50, "a": 50}),
    ],
)
def test_new_split(old: dict, percent: int, expected: dict) -> None:
    assert new_split(old, "n", percent) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("digits", "digits"), ("Digits (EU)", "digits-eu"), ("2nd", "m-2nd")],
)
def test_resource_id(name: str, expected: str) -> None:
    assert resource_id(name) == expected


@pytest.mark.tf
def test_the_pusher_registers_and_deploys(
    vertex: Any, bucket: Any, make_saved_model: Any
) -> None:
    """A second execution pushes nothing."""
    from tfx.types import standard_artifacts

    from components.pusher.executor import Executor

    model = standard_artifacts.Model()
    model.uri = str(make_saved_model("model/Format-Serving").parent)
    destination = {"filesystem": {"base_directory": bucket.uri("serving")}}
    config = {
        "workspace_id": None,
        "registry": {**vars(REGISTRY), "labels": {}},
        "endpoint": vars(ENDPOINT),
    }
    properties = {
        "push_destination": json.dumps(destination),
        "custom_config": json.dumps(config),
    }
    found = []
    for _ in range(2):
        pushed = standard_artifacts.PushedModel()
        Executor().Do({"model": [model]}, {"pushed_model": [pushed]}, properties)
        texts = ("state", "pushed_destination", "registered_model", "endpoint")
        found.append([pushed.get_string_custom_property(name) for name in texts])

    places = [bucket.uri("serving/1"), f"{MODEL}@1", f"{PARENT}/endpoints/digits"]
    assert found == [["pushed", *places], ["already_served", *places]]
    assert [item["artifactUri"] for item in vertex.versions()] == [places[0]]
    assert vertex.served() == {"1": 100}
