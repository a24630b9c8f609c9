"""Configs that a service cannot run, each the bundled digits with one fault."""

from __future__ import annotations

import json

import pytest

from pipeline.checks.check_service import check_service
from pipeline.config.load import load_config
from sluice.errors import ConfigError
from sluice.project import own_root

pytestmark = pytest.mark.unit

IMAGE = "europe-west4-docker.pkg.dev/p/sluice/digits"
GIVEN = [
    "cloud.root=gs://bucket/sluice",
    f"cloud.image={IMAGE}",
    "cloud.project=my-project",
    "cloud.region=europe-west4",
    "data.dir=gs://bucket/data/digits",
]
KUBEFLOW = ["cloud.engine=kubeflow"]
REGISTRY = "{serving_image: x.y/z:1}"
TPU = "{machine_type: m, tpu: {topology: 2x2, runtime_version: 2.16.1}}"


def check(*overrides, name="digits", profile=None):
    given = [*GIVEN, *overrides]
    return check_service(load_config(name, profile=profile, overrides=given))


@pytest.mark.parametrize(
    ("name", "profile", "overrides"),
    [
        ("digits", None, []),
        ("digits", None, ["model_params={k: '${env:A}'}", "cloud.env={A: x}"]),
        ("digits", None, [f"cloud.nodes={{Trainer: {TPU}}}", "train.strategy=tpu"]),
        ("cifar10", "vertex-tpu", []),
        ("fashion-mnist", "vertex-gpu", []),
        ("taxi", "vertex-dataflow", []),
        ("taxi", "kubeflow", []),
    ],
)
def test_a_config_without_faults(name, profile, overrides):
    assert check(*overrides, name=name, profile=profile) == []


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["data.dir=data/digits"], "data/digits, is on this machine"),
        (["cloud.project=null", "cloud.beam.runner=dataflow"], "no cloud.project"),
        (["cloud.nodes={Trainr: {cpu: 4}}"], "no node 'Trainr'.*mean 'Trainer'"),
        ([f"cloud.nodes={{Transform: {TPU}}}"], "only the Trainer.*can have tpu"),
        (
            [f"cloud.push={{registry: {REGISTRY}, endpoint: {{min_replicas: 2}}}}"],
            "max_replicas is less than min_replicas",
        ),
        (["cloud.schedule={cron: 0 3 * *}"], "should be five fields"),
        (["cloud.schedule={cron: 0 3 * * *, timezone: X}"], "should be a time zone"),
        (
            ["model_params={key: '${env:HOME}'}"],
            "nothing sets the environment variable HOME in the container of Trainer",
        ),
        ([*KUBEFLOW, f"cloud.nodes={{Trainer: {TPU}}}"], "can have machine_type.*tpu"),
        ([*KUBEFLOW, "cloud.network=projects/1/global/networks/n"], "only Vertex AI"),
    ],
)
def test_a_fault(overrides, says):
    with pytest.raises(ConfigError, match=f"(?s){says}"):
        check(*overrides)


def test_a_config_without_the_section_names_the_profiles():
    with pytest.raises(ConfigError, match="--profile vertex or --profile kubeflow"):
        check_service(load_config("digits"))


def test_warnings():
    (local,) = check("push.serving_dir=serving")
    assert local.startswith("--set push.serving_dir=serving")


def test_verbs_tell_all_problems_without_tfx(sluice, monkeypatch):
    monkeypatch.chdir(own_root())
    for verb in ("submit", "validate"):
        code, out, err = sluice(verb, "digits", "--set", "cloud={}", "--json")
        assert (code, json.loads(out)["exit_code"]) == (2, 2)
        first, *lines = err.splitlines()
        assert first == "error: the config has 4 problems"
        assert lines[0] == (
            "  - --set cloud={}, cloud.root: there is no cloud.root; "
            "--set cloud.root=gs://BUCKET/FOLDER"
        )
