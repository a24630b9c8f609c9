"""Pushes to Vertex AI's registry; Google's library is replaced."""

from __future__ import annotations

import inspect
import json
import re
from types import SimpleNamespace

import pytest

from components.pusher import vertex_push
from components.pusher.vertex_push import register
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


@pytest.fixture
def registry(monkeypatch):
    fake = Registry(vertex_push.Model)
    monkeypatch.setattr(vertex_push, "Model", fake)
    monkeypatch.setattr(vertex_push, "init", lambda project, location: None)
    return fake


def publication(version):
    return Publication(
        version, "pushed", f"gs://b/serving/{version}", f"{version:064}"[::-1]
    )


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


def test_a_store_on_this_machine_cannot_be_registered():
    local = Publication(1, "pushed", "/models/1", "d" * 64)
    with pytest.raises(UsageError, match="from a bucket only"):
        register(local, REGISTRY, None)


@pytest.fixture
def execute(registry, bucket, make_saved_model):
    """Runs the Pusher; returns properties of what it has pushed."""
    from tfx.types import standard_artifacts

    from components.pusher.executor import Executor

    model = standard_artifacts.Model()
    model.uri = str(make_saved_model("model/Format-Serving").parent)
    destination = {"filesystem": {"base_directory": bucket.uri("serving")}}
    config = {"workspace_id": None, "registry": REGISTRY}
    properties = {
        "push_destination": json.dumps(destination),
        "custom_config": json.dumps(config),
    }

    def execute():
        pushed = standard_artifacts.PushedModel()
        Executor().Do({"model": [model]}, {"pushed_model": [pushed]}, properties)
        texts = ("state", "pushed_destination", "registered_model")
        return [pushed.get_string_custom_property(name) for name in texts]

    return execute


@pytest.mark.tf
def test_the_pusher_registers(execute, registry, bucket):
    """A second execution pushes nothing."""
    places = [bucket.uri("serving/1"), f"{MODEL}@1"]
    assert execute() == ["pushed", *places]
    assert execute() == ["already_served", *places]
    assert [item["artifact_uri"] for item in registry.versions] == [places[0]]


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
