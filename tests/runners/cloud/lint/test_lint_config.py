"""Findings from the config alone, each from the bundled digits with one fault."""

from __future__ import annotations

import pytest

from pipeline.config.load import load_config
from runners.cloud.lint.finding import Finding, LintError, refuse
from runners.cloud.lint.lint_config import lint_config

pytestmark = pytest.mark.unit

IMAGE = "europe-west4-docker.pkg.dev/p/sluice/digits:0123abcd"
GIVEN = [
    "cloud.root=gs://bucket/sluice",
    f"cloud.image={IMAGE}",
    "cloud.project=p",
    "cloud.region=europe-west4",
    "data.dir=gs://bucket/data/digits",
]
KUBEFLOW = ["cloud.engine=kubeflow", "cloud.kubeflow={host: https://kfp.example}"]
REGISTRY = "{serving_image: x.y/z:1}"
TPU = "{machine_type: %s, tpu: {topology: %s, runtime_version: 2.16.1}}"


def _lint(*overrides: str) -> list[Finding]:
    return lint_config(load_config("digits", overrides=[*GIVEN, *overrides]))


def _trainer(text: str) -> str:
    return f"cloud.nodes={{Trainer: {text}}}"


def _gpu(machine: str, gpu: str, count: int = 1) -> str:
    accelerator = f"{{type: NVIDIA_{gpu}, count: {count}}}"
    return _trainer(f"{{machine_type: {machine}, accelerator: {accelerator}}}")


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        KUBEFLOW,
        [*KUBEFLOW, _trainer("{cpu: 128, accelerator: {type: nvidia.com/gpu}}")],
        [_gpu("n1-standard-8", "TESLA_T4")],
        [_gpu("g2-standard-24", "L4", 2)],
        [_trainer(TPU % ("ct5lp-hightpu-4t", "2x2")), "train.strategy=tpu"],
        [_trainer(TPU % ("ct5lp-hightpu-4t", "4x4")), "train.strategy=tpu"],
        [
            _trainer("{workers: 3, machine_type: n1-standard-8}"),
            "train.strategy=multi_worker",
        ],
        ["cloud.image=europe-west4-docker.pkg.dev/p/sluice/digits"],
        ["cloud.nodes={default: {cpu: 8, memory_gb: 32}}"],
        ["cloud.env={TOKENIZER: bpe}"],
    ],
    ids=str,
)
def test_a_config_without_faults(overrides: list[str]) -> None:
    assert _lint(*overrides) == []


def test_what_is_needed() -> None:
    config = load_config("digits", overrides=["cloud={}"])
    found = lint_config(config)
    assert [item.where.rpartition(", ")[2] for item in found] == [
        "cloud.root",
        "cloud.image",
        "cloud.region",
        "data.dir",
    ]
    assert found[0].fix.endswith("--set cloud.root=gs://BUCKET/FOLDER")
    assert "gcloud storage rsync --recursive data/digits gs://" in found[-1].fix


@pytest.mark.parametrize(
    ("fault", "severity", "what", "fix"),
    [
        (
            "cloud.region=europe-west44",
            "warning",
            "Vertex AI had no region 'europe-west44' in August 2026",
            "did you mean 'europe-west4'?",
        ),
        (f"name={'n' * 64}", "error", "the pipeline's name has 64 characters", "short"),
        ("cloud.labels={Team: a}", "error", "'Team': 'a' is not a valid", "lower"),
        ("cloud.labels={team: A B}", "error", "'team': 'A B' is not a valid", "lower"),
        (
            "cloud.labels={" + ", ".join(f"k{n}: v" for n in range(60)) + "}",
            "error",
            "there are 60 labels, at most 56 fit",
            "leave some out",
        ),
        (
            "cloud.service_account=me@example.com",
            "error",
            "'me@example.com' is not a service account",
            "NAME@PROJECT.iam.gserviceaccount.com",
        ),
        ("cloud.network=default", "error", "'default' is not a network", "projects/"),
        ("cloud.image=sluice", "warning", "sluice names no registry", "image push"),
        ("cloud.image=a/b:latest", "warning", "another image tomorrow", "by digest"),
        ("cloud.image=localhost:5000/a:1", "error", "on this machine", "image push"),
        ("cloud.image=a b", "error", "'a b' is not a reference", "NAME:TAG"),
        ("data.dir=data/digits", "error", "data/digits, is on this machine", "rsync"),
        ("push.serving_dir=serving", "warning", "serving is on this machine", "null"),
        (
            "cloud.nodes={Trainr: {cpu: 4}}",
            "error",
            "there is no node 'Trainr'",
            "did you mean 'Trainer'?",
        ),
        ("cloud.beam.nodes=[Transfrm]", "error", "no node 'Transfrm'", "'Transform'"),
        (_trainer("{cpu: 128}"), "error", "128 CPU cores are more than", "at most 96"),
        (
            "cloud.nodes={Transform: {memory_gb: 700}}",
            "error",
            "700 GB of memory are more than the 624",
            "at most 624",
        ),
        (
            "cloud.nodes={Transform: {machine_type: n1-standard-8}}",
            "error",
            "only the Trainer and Tuners can have machine_type",
            "leave machine_type out",
        ),
        (
            _trainer("{machine_type: n9-standard-8}"),
            "warning",
            "Vertex AI had no machine type 'n9-standard-8' in August 2026",
            "check its name",
        ),
        (
            _trainer("{accelerator: {type: NVIDIA_TESLA_T44}}"),
            "warning",
            "Vertex AI had no accelerator 'NVIDIA_TESLA_T44'",
            "did you mean 'NVIDIA_TESLA_T4'?",
        ),
        (
            _trainer("{accelerator: {type: NVIDIA_TESLA_K80}}"),
            "error",
            "NVIDIA_TESLA_K80 is no longer offered",
            "NVIDIA_L4",
        ),
        (
            _trainer("{accelerator: {type: NVIDIA_TESLA_T4, count: 3}}"),
            "error",
            "no machine has 3 NVIDIA_TESLA_T4",
            "take one of 1, 2, 4",
        ),
        (
            _gpu("e2-standard-8", "TESLA_T4"),
            "error",
            "e2-standard-8 cannot carry 1 NVIDIA_TESLA_T4",
            "take an n1 machine of at most 48 vCPUs",
        ),
        (
            _gpu("n1-standard-96", "TESLA_V100"),
            "error",
            "n1-standard-96 cannot carry 1 NVIDIA_TESLA_V100",
            "at most 12 vCPUs",
        ),
        (
            _gpu("n1-standard-8", "TESLA_A100"),
            "error",
            "n1-standard-8 cannot carry 1 NVIDIA_TESLA_A100",
            "take a2-highgpu-1g",
        ),
        (
            _gpu("a2-highgpu-2g", "TESLA_A100"),
            "error",
            "a2-highgpu-2g has 2 NVIDIA_TESLA_A100, not 1",
            "{type: NVIDIA_TESLA_A100, count: 2}, or take a2-highgpu-1g",
        ),
        (
            _trainer("{machine_type: a2-highgpu-1g}"),
            "error",
            "a2-highgpu-1g has 1 NVIDIA_TESLA_A100, which the service wants to be",
            "accelerator: {type: NVIDIA_TESLA_A100, count: 1}",
        ),
        (
            "cloud.push.endpoint={machine_type: n1-standard-2}",
            "error",
            "there is no cloud.push.registry",
            "serving_image",
        ),
        (
            f"cloud.push={{registry: {REGISTRY}, endpoint: {{min_replicas: 2}}}}",
            "error",
            "min_replicas is larger than max_replicas",
            "max_replicas: 2",
        ),
        (
            "cloud.schedule={cron: 0 3 * *}",
            "error",
            "the schedule's cron expression is wrong: 4 fields",
            "write five fields",
        ),
        (
            "cloud.schedule={cron: 0 3 * * *, timezone: Europe/Berln}",
            "error",
            "there is no timezone 'Europe/Berln'",
            "did you mean 'Europe/Berlin'?",
        ),
        (
            f"cloud.env={{KEY: AIza{'0' * 35}}}",
            "error",
            "this is a Google API key, which the run would show",
            "Secret Manager",
        ),
        (
            "cloud.nodes={Trainer: {env: {DB_PASSWORD: hunter2}}}",
            "warning",
            "by its name, DB_PASSWORD is a secret",
            "Secret Manager",
        ),
        (
            "model_params={key: '${env:HOME}'}",
            "error",
            "nothing sets the environment variable HOME in the container of Trainer",
            "Secret Manager",
        ),
        (
            "nodes={Own: {component: 'a.b:C', parameters: {table: setup.py}}}",
            "error",
            "setup.py is on this machine",
            "gs:// address",
        ),
    ],
)
def test_a_fault(fault: str, severity: str, what: str, fix: str) -> None:
    found = _lint(fault)
    assert any(
        item.severity == severity and what in item.what and fix in item.fix
        for item in found
    ), found


@pytest.mark.parametrize(
    ("machine", "topology", "what"),
    [
        ("ct5lp-hightpu-4t", "3x3", "ct5lp-hightpu-4t has no topology 3x3"),
        ("ct5lp-hightpu-8t", "2x2", "a slice 2x2 has 4 chips, ct5lp-hightpu-8t has 8"),
        ("ct5lp-hightpu-8t", "4x4", "a slice 4x4 has 16 chips, ct5lp-hightpu-8t has 8"),
        ("ct6e-standard-1t", "2x2", "a slice 2x2 has 4 chips, ct6e-standard-1t has 1"),
        ("n1-standard-8", "2x2", "n1-standard-8 has no TPU"),
    ],
)
def test_tpu(machine: str, topology: str, what: str) -> None:
    found = _lint(_trainer(TPU % (machine, topology)), "train.strategy=tpu")
    assert [item.what for item in found] == [what]


@pytest.mark.parametrize(
    ("given", "strategy"),
    [
        ("{workers: 4, machine_type: n1-standard-8}", "multi_worker"),
        (TPU % ("ct5lp-hightpu-4t", "2x2"), "tpu"),
    ],
)
def test_a_strategy_that_does_not_use_the_machines(given: str, strategy: str) -> None:
    [found] = _lint(_trainer(given), "train.strategy=mirrored")
    assert found.what == "train.strategy is mirrored, which does not use it"
    assert found.fix == f"write train: {{strategy: {strategy}}}"


def test_a_gpu_that_the_region_lacks() -> None:
    given = _gpu("g2-standard-8", "L4")
    [found] = _lint(given, "cloud.region=europe-north1")
    assert (found.severity, found.what) == (
        "warning",
        "europe-north1 had no NVIDIA_L4 in August 2026",
    )
    assert "europe-west4, europe-west6" in found.fix
    assert _lint(given, "cloud.region=europe-west4") == []


def test_tpu_elsewhere_and_half_said() -> None:
    found = _lint(
        _trainer("{machine_type: ct5p-hightpu-4t}"),
        "train.strategy=tpu",
        "cloud.region=asia-east1",
    )
    assert [item.what for item in found] == [
        "ct5p-hightpu-4t has a TPU, whose topology is missing"
    ]
    found = _lint(
        _trainer(TPU % ("ct5p-hightpu-4t", "2x2x1")),
        "train.strategy=tpu",
        "cloud.region=asia-east1",
    )
    assert [(item.severity, item.what) for item in found] == [
        ("warning", "asia-east1 had no ct5p-hightpu-4t in August 2026")
    ]


def test_what_kubeflow_lacks() -> None:
    found = _lint(
        *KUBEFLOW[:1],
        "cloud.network=projects/1/global/networks/n",
        f"cloud.push.registry={REGISTRY}",
        _trainer(TPU % ("ct5lp-hightpu-4t", "2x2")),
    )
    assert found[0].severity == "warning"
    assert found[0].what.endswith("schedule need the address of Kubeflow Pipelines")
    assert [item.what for item in found if item.severity == "error"] == [
        "Kubeflow Pipelines has no registry; only Vertex AI does",
        "Kubeflow Pipelines has no network; only Vertex AI does",
        "Kubeflow Pipelines has no machine_type; only Vertex AI does",
        "Kubeflow Pipelines has no tpu; only Vertex AI does",
    ]


def test_a_variable_that_is_set_there_is_no_fault() -> None:
    assert _lint("model_params={k: '${env:PLACE}'}", "cloud.env={PLACE: x}") == []


def test_the_place_is_the_line_of_the_key_or_the_set() -> None:
    found = _lint("data.dir=data/digits", "cloud.nodes={Trainer: {cpu: 128}}")
    assert [item.where for item in found] == [
        "--set data.dir",
        "--set cloud.nodes, cloud.nodes.Trainer.cpu",
    ]


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        (["cloud.project=null"], []),
        (["cloud.project=null", "cloud.beam.runner=dataflow"], ["project"]),
        (["cloud.project=null", f"cloud.push.registry={REGISTRY}"], ["project"]),
        (
            [_trainer("{workers: 2}"), "train.strategy=multi_worker"],
            ["nodes.Trainer"],
        ),
    ],
)
def test_what_only_some_need(given: list[str], missing: list[str]) -> None:
    places = [item.where.rpartition("cloud.")[2] for item in _lint(*given)]
    assert places == missing


def test_the_place_of_a_set_shows_no_value() -> None:
    """Found: it showed the secret, and the profile's line for keys of a --set."""
    given = "model_params={learning: {api_key: hunter2}}"
    [finding] = _lint(given)
    assert finding.where == "--set model_params, model_params.learning.api_key"
    assert "hunter2" not in str(finding)
    config = load_config(
        "digits",
        profile="vertex",
        overrides=[*GIVEN, "cloud.nodes.Trainer={machine_type: n1-standard-17}"],
    )
    [finding] = lint_config(config)
    assert finding.where == (
        "--set cloud.nodes.Trainer, cloud.nodes.Trainer.machine_type"
    )


def test_one_error_lists_all_findings() -> None:
    found = _lint("data.dir=data/digits", "cloud.image=a/b:latest")
    with pytest.raises(LintError) as caught:
        refuse(found, load_config("digits", overrides=GIVEN))
    assert str(caught.value).splitlines()[0] == (
        "the pipeline 'digits' cannot run on Vertex AI: 1 problem"
    )
    lines = caught.value.details
    assert lines[0].startswith("  - --set data.dir: the data,")
    assert all(line.startswith("  - warning: --set cloud.image:") for line in lines[1:])
    assert set(caught.value.findings) == set(found)


def test_warnings_alone_are_not_refused() -> None:
    config = load_config("digits", overrides=GIVEN)
    refuse(_lint("cloud.image=a/b:latest"), config)
