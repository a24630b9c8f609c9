"""Pushes to Vertex AI's registry and to an endpoint; Google's library is replaced."""

from __future__ import annotations

import inspect
import json
import re
from types import SimpleNamespace

import pytest

from components.pusher import vertex_push
from components.pusher.vertex_push import deploy, new_split, register
from serving.model_store import Publication
from sluice import secrets
from sluice.errors import RemoteError, UsageError

pytestmark = pytest.mark.cloud

PARENT = "projects/my-project/locations/europe-west4"
MODEL = f"{PARENT}/models/digits"
REGISTRY = {
    "model": "Digits",
    "serving_image": "europe-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest",
    "labels": {"team": "mail"},
    "project": "my-project",
    "region": "europe-west4",
}
ENDPOINT = {
    "name": "Digits",
    "machine_type": "n1-standard-2",
    "accelerator": None,
    "min_replicas": 1,
    "max_replicas": 1,
    "traffic_percent": 100,
}


class Registry:
    """Replaces ``aiplatform.Model``: the arguments are checked against its own."""

    def __init__(self, real):
        self.real = real
        self.versions = []
        self.error = None

    def __call__(self, name, version):
        return self._version(next(x for x in self.versions if x["id"] == version))

    def list(self, **given):
        inspect.signature(self.real.list).bind(**given)
        names = {f'display_name="{x["display_name"]}"' for x in self.versions}
        return [self._version(self.versions[0])] if given["filter"] in names else []

    def upload(self, image, **given):
        inspect.signature(self.real.upload).bind(image, **given)
        if self.error:
            raise self.error
        assert given["parent_model"] == (MODEL if self.versions else None)
        assert all(len(value) <= 63 for value in given["labels"].values())
        version = str(len(self.versions) + 1)
        self.versions.append({**given, "image": image, "id": version})
        return self._version(self.versions[-1])

    def _version(self, found):
        return SimpleNamespace(
            resource_name=MODEL,
            name="digits",
            display_name=found["display_name"],
            version_id=found["id"],
            versioned_resource_name=f"{MODEL}@{found['id']}",
            versioning_registry=SimpleNamespace(list_versions=self._list_versions),
        )

    def _list_versions(self, filter):
        ((label, value),) = re.findall(r'^labels\.(\w+)="(.+)"$', filter)
        found = [x["id"] for x in self.versions if x["labels"].get(label) == value]
        return [SimpleNamespace(version_id=version) for version in found]


class Endpoints:
    """Replaces ``aiplatform.Endpoint``, and is the only one that there is."""

    resource_name = f"{PARENT}/endpoints/1"

    def __init__(self, real):
        self.real = real
        self.created, self.deployed, self.split = [], {}, {}

    def list(self, **given):
        inspect.signature(self.real.list).bind(**given)
        return [self] if self.created else []

    def create(self, display_name):
        self.created.append(display_name)
        return self

    def deploy(self, model, **given):
        inspect.signature(self.real.deploy).bind(self, model, **given)
        assert given["traffic_split"] == {}
        self.deployed[str(100 + len(self.deployed))] = (model, given)

    @property
    def traffic_split(self):
        return dict(self.split)

    def list_models(self):
        return [
            SimpleNamespace(
                id=key,
                # The service has the project's number.
                model=model.resource_name.replace("my-project", "12345"),
                model_version_id=model.version_id,
            )
            for key, (model, _) in self.deployed.items()
            if model
        ]

    def update(self, traffic_split):
        assert sum(traffic_split.values()) == 100
        self.split = traffic_split

    def undeploy(self, deployed):
        assert not self.split.get(deployed)
        self.deployed[deployed] = None, None

    def served(self):
        """Returns the share of each version."""
        return {self.deployed[key][0].version_id: n for key, n in self.split.items()}


@pytest.fixture
def registry(monkeypatch):
    fake = Registry(vertex_push.Model)
    monkeypatch.setattr(vertex_push, "Model", fake)
    monkeypatch.setattr(vertex_push, "init", lambda project, location: None)
    return fake


@pytest.fixture
def endpoint(registry, monkeypatch):
    fake = Endpoints(vertex_push.Endpoint)
    monkeypatch.setattr(vertex_push, "Endpoint", fake)
    return fake


def publication(version):
    return Publication(
        version, "pushed", f"gs://b/serving/{version}", f"{version:064}"[::-1]
    )


def push(version, **changes):
    model = register(publication(version), REGISTRY, "run-1")
    return deploy(model, {**ENDPOINT, **changes})


def test_each_digest_is_one_version_of_one_model(registry):
    for version in (1, 2, 1):
        found = register(publication(version), REGISTRY, "run-1")
        assert found.versioned_resource_name == f"{MODEL}@{version}"

    first, second = registry.versions
    assert first["artifact_uri"] == "gs://b/serving/1"
    assert first["image"] == REGISTRY["serving_image"]
    assert first["labels"] == {"team": "mail", "sluice_digest": f"{1:064}"[::-1][:63]}
    assert "run-1" in first["version_description"]
    assert (first["version_aliases"], second["version_aliases"]) == (["v1"], ["v2"])


def test_traffic_moves_when_the_version_is_ready(endpoint):
    assert push(1) == endpoint.resource_name
    assert endpoint.served() == {"1": 100}
    gpu = {"type": "NVIDIA_TESLA_T4", "count": 1}
    push(2, accelerator=gpu, max_replicas=4)

    assert endpoint.created == ["Digits"]
    assert endpoint.served() == {"2": 100}
    assert [item.model_version_id for item in endpoint.list_models()] == ["2"]
    _, given = endpoint.deployed["101"]
    assert (given["accelerator_type"], given["accelerator_count"]) == tuple(
        gpu.values()
    )
    assert (given["min_replica_count"], given["max_replica_count"]) == (1, 4)


@pytest.mark.parametrize("step", ["deploy", "update"])
def test_a_push_that_failed_goes_on_where_it_was(endpoint, step, monkeypatch):
    push(1)
    with monkeypatch.context() as patched, pytest.raises(OSError, match="refused"):
        patched.setattr(endpoint, step, lambda *_, **__: _refuse())
        push(2)
    assert endpoint.served() == {"1": 100}

    push(2)

    assert endpoint.served() == {"2": 100}
    assert len(endpoint.list_models()) == 1


def _refuse():
    raise OSError("refused")


def test_a_part_of_the_traffic(endpoint):
    for version, percent, expected in (
        (1, 10, {"1": 100}),
        (2, 10, {"1": 90, "2": 10}),
        # Already there: its share stays as somebody may have set it since.
        (2, 100, {"1": 90, "2": 10}),
        (3, 100, {"3": 100}),
    ):
        push(version, traffic_percent=percent)
        assert endpoint.served() == expected


def test_a_store_on_this_machine_cannot_be_registered():
    local = Publication(1, "pushed", "/models/1", "d" * 64)
    with pytest.raises(UsageError, match="from a bucket only"):
        register(local, REGISTRY, None)


@pytest.mark.parametrize(
    ("old", "percent", "expected"),
    [
        ({"a": 50, "b": 50}, 33, {"n": 33, "a": 34, "b": 33}),
        ({"a": 99, "b": 1}, 50, {"n": 50, "a": 50}),
    ],
)
def test_new_split(old, percent, expected):
    assert new_split(old, "n", percent) == expected


@pytest.fixture
def execute(endpoint, bucket, make_saved_model):
    """Runs the Pusher; returns properties of what it has pushed."""
    from tfx.types import standard_artifacts

    from components.pusher.executor import Executor

    model = standard_artifacts.Model()
    model.uri = str(make_saved_model("model/Format-Serving").parent)
    destination = {"filesystem": {"base_directory": bucket.uri("serving")}}
    config = {"workspace_id": None, "registry": REGISTRY, "endpoint": ENDPOINT}
    properties = {
        "push_destination": json.dumps(destination),
        "custom_config": json.dumps(config),
    }

    def execute():
        pushed = standard_artifacts.PushedModel()
        Executor().Do({"model": [model]}, {"pushed_model": [pushed]}, properties)
        texts = ("state", "pushed_destination", "registered_model", "endpoint")
        return [pushed.get_string_custom_property(name) for name in texts]

    return execute


@pytest.mark.tf
def test_the_pusher_registers_and_deploys(execute, registry, endpoint, bucket):
    """A second execution pushes nothing."""
    places = [bucket.uri("serving/1"), f"{MODEL}@1", endpoint.resource_name]
    assert execute() == ["pushed", *places]
    assert execute() == ["already_served", *places]
    assert [item["artifact_uri"] for item in registry.versions] == [places[0]]
    assert endpoint.served() == {"1": 100}


@pytest.mark.tf
def test_a_secret_in_a_refusal_is_not_in_the_error(execute, registry, monkeypatch):
    """The error is in the node's log, the record and the page."""
    from google.api_core.exceptions import BadRequest

    secret = "planted-5ecret-v4lue"
    monkeypatch.setattr(secrets, "_resolved", {})
    monkeypatch.setenv("SLUICE_TEST_TOKEN", secret)
    secrets.remember("${env:SLUICE_TEST_TOKEN}")
    registry.error = BadRequest(f"the label {secret} is not valid")
    with pytest.raises(RemoteError, match="pushed, but not registered") as failed:
        execute()
    assert "the label ${env:SLUICE_TEST_TOKEN} is not" in str(failed.value)
