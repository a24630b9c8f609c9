"""``TFRecordGen`` run by our local runner, and with TFX's cloud entry points."""

import json
import os
from pathlib import Path

import pytest

from sample_data.tf_example import encode
from sluice.errors import DataError
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf

SPLITS = {"train": "span-{SPAN}/train-*", "eval": "span-{SPAN}/eval-*"}
GEN = "TFRecordGen"


def write(base, name, users):
    path = base / name
    path.parent.mkdir(parents=True, exist_ok=True)
    records = [encode({"user": [user], "x": [0.5]}) for user in users]
    tfrecord.write(path, records)
    return path


def write_span(base, number, *users, marked=True):
    write(base, f"span-{number}/train-00000-of-00001", users)
    write(base, f"span-{number}/eval-00000-of-00001", [0])
    if marked:
        (base / f"span-{number}" / "_SUCCESS").touch()


def gen(base, patterns=None, spans="", **settings):
    from components.tfrecord_gen.component import TFRecordGen
    from components.tfrecord_gen.settings import Ingestion

    asked = Ingestion(base=str(base), patterns=patterns or SPLITS, **settings)
    return TFRecordGen(asked, spans)


def marked_gen(base, **settings):
    return gen(base, complete_when={"marker": "_SUCCESS"}, window=2, **settings)


def users_of(examples, split):
    from sluice.tfrecords.parse_tf_example import parse

    return sorted(
        parse(record).features.feature["user"].int64_list.value[0]
        for path in sorted((examples / f"Split-{split}").iterdir())
        if path.stat().st_size
        for record in tfrecord.read(path)
    )


@pytest.fixture
def run(tmp_path):
    """Runs nodes as one pipeline with its cache on; returns the record's nodes."""
    from tfx.orchestration import metadata
    from tfx.orchestration.pipeline import Pipeline

    from runners.local.local_runner import LocalRunner

    def run(*nodes):
        database = str(tmp_path / "metadata.db")
        config = metadata.sqlite_metadata_connection_config(database)
        pipeline = Pipeline(
            pipeline_name="ingestion",
            pipeline_root=str(tmp_path / "root"),
            metadata_connection_config=config,
            components=list(nodes),
            enable_cache=True,
        )
        record = LocalRunner(workers=2).run(pipeline)
        return {node.id: node for node in record.nodes}

    return run


def uri(node, key):
    (found,) = node.outputs[key]
    return Path(found)


def custom_properties(database, where):
    """Returns the properties of the artifact at a place, as ML Metadata has them."""
    from ml_metadata.metadata_store import metadata_store
    from tfx.orchestration import metadata

    config = metadata.sqlite_metadata_connection_config(str(database))
    (found,) = metadata_store.MetadataStore(config).get_artifacts_by_uri(str(where))
    every = {**found.properties, **found.custom_properties}
    return {k: getattr(v, v.WhichOneof("value")) for k, v in every.items()}


def test_a_new_span_runs_and_an_untouched_window_does_not(tmp_path, run):
    base = tmp_path / "trips"
    for number in (1, 2):
        write_span(base, number, 10 * number)
    first = run(marked_gen(base))[GEN]
    assert first.state == "ran"
    assert users_of(uri(first, "examples"), "train") == [10, 20]

    for path in base.rglob("train-*"):
        os.utime(path)
    write_span(base, 3, 30, marked=False)
    assert run(marked_gen(base))[GEN].state == "cached"

    (base / "span-3" / "_SUCCESS").touch()
    third = run(marked_gen(base))[GEN]
    assert third.state == "ran"
    assert users_of(uri(third, "examples"), "train") == [20, 30]

    # As `cp -p` would: the same name, size and time.
    path = base / "span-2" / "train-00000-of-00001"
    before = path.stat()
    write(base, "span-2/train-00000-of-00001", [99])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert run(marked_gen(base))[GEN].state == "ran"

    write_span(base, 1, 11)
    assert run(marked_gen(base))[GEN].state == "cached"


def test_the_artifact_is_what_import_example_gen_publishes(tmp_path, run):
    from tensorflow_metadata.proto.v0 import statistics_pb2
    from tfx.components import ImportExampleGen, StatisticsGen
    from tfx.proto import example_gen_pb2

    base = tmp_path / "trips"
    write(base, "20240102/v7/part", range(200))
    write(base, "20240102/v6/part", [0])
    pattern = "{YYYY}{MM}{DD}/v{VERSION}/*"
    hashed = {"train": 2, "eval": 1, "by": "user"}
    ours = gen(base, {"": pattern}, hash_splits=hashed)
    splits = example_gen_pb2.SplitConfig(partition_feature_name="user")
    splits.splits.add(name="train", hash_buckets=2)
    splits.splits.add(name="eval", hash_buckets=1)
    stock = ImportExampleGen(
        input_base=str(base),
        input_config=example_gen_pb2.Input(
            splits=[example_gen_pb2.Input.Split(name="all", pattern=pattern)]
        ),
        output_config=example_gen_pb2.Output(split_config=splits),
    )
    statistics = StatisticsGen(examples=ours.outputs["examples"])
    nodes = run(ours, stock, statistics)

    found, wanted = (
        custom_properties(tmp_path / "metadata.db", uri(nodes[name], "examples"))
        for name in (GEN, "ImportExampleGen")
    )
    fingerprint = found.pop("input_fingerprint")
    assert fingerprint.startswith("sha256:")
    assert (found["span"], found["version"]) == (19_724, 7)
    del wanted["input_fingerprint"]
    assert found == wanted
    for split in ("train", "eval"):
        users = users_of(uri(nodes[GEN], "examples"), split)
        assert users == users_of(uri(nodes["ImportExampleGen"], "examples"), split)
        read = statistics_pb2.DatasetFeatureStatisticsList.FromString(
            (
                uri(nodes["StatisticsGen"], "statistics")
                / f"Split-{split}"
                / "FeatureStats.pb"
            ).read_bytes()
        )
        assert read.datasets[0].num_examples == len(users) > 50


class Cloud:
    """Runs a compiled node as Vertex does: TFX's driver, then the executor."""

    def __init__(self, node, tmp_path):
        from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner as kubeflow
        from tfx.orchestration.pipeline import Pipeline

        self._out = tmp_path / "cloud"
        config = kubeflow.KubeflowV2DagRunnerConfig(
            default_image="image", use_pipeline_spec_2_1=True
        )
        self.job = kubeflow.KubeflowV2DagRunner(config).run(
            Pipeline("ingestion", str(self._out), components=[node]), write_out=False
        )

    @property
    def container(self):
        deployment = self.job["pipelineSpec"]["deploymentSpec"]
        return deployment["executors"][f"{GEN}_executor"]["container"]

    def run(self, **parameters):
        """Runs with the job's runtime parameters; returns ``examples``' properties."""
        from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor
        from tfx.orchestration.kubeflow.v2.file_based_example_gen import driver

        invocation = json.dumps(self._invocation(parameters))
        hook = self.container["lifecycle"]["preCacheCheck"]
        for module, arguments in (
            (driver, hook["args"]),
            (kubeflow_v2_run_executor, self.container["args"]),
        ):
            filled = [invocation if item == "{{$}}" else item for item in arguments]
            module.main(module._parse_flags(filled))
        output = json.loads((self._out / "output.json").read_text())
        (artifact,) = output["artifacts"]["examples"]["artifacts"]
        properties = artifact["metadata"]
        return {k.removeprefix("custom:"): v for k, v in properties.items()}

    def _invocation(self, parameters):
        spec = self.job["pipelineSpec"]
        values = {}
        for name, given in spec["root"]["dag"]["tasks"][GEN]["inputs"][
            "parameters"
        ].items():
            if "runtimeValue" in given:
                values[name] = given["runtimeValue"]["constant"]
            else:
                values[name] = parameters[given["componentInputParameter"]]
        kinds = spec["components"][GEN]["outputDefinitions"]["artifacts"]
        return {
            "inputs": {"parameterValues": values},
            "outputs": {
                "outputFile": str(self._out / "output.json"),
                "artifacts": {
                    key: {
                        "artifacts": [
                            {
                                "name": f"artifacts/{key}",
                                "uri": str(self._out / key),
                                "type": kind["artifactType"],
                            }
                        ]
                    }
                    for key, kind in kinds.items()
                },
            },
        }


@pytest.mark.parametrize("patterns", [SPLITS, {"train": "train-*", "eval": "eval-*"}])
def test_the_cloud_ingests_the_files_chosen_at_submission(tmp_path, patterns):
    """Found: only spans were pinned; of other data the newest was trained on."""
    from tfx.orchestration import data_types

    from components.tfrecord_gen.input_files import SpanChoice
    from components.tfrecord_gen.select_spans import select_spans
    from components.tfrecord_gen.settings import Ingestion

    base, stored = tmp_path / "trips", tmp_path / "spans.json"
    folder = "span-1/" if patterns == SPLITS else ""
    for name in ("train-1", "eval-1"):
        write(base, folder + name, [1])
    window = select_spans(Ingestion(base=str(base), patterns=patterns), 0.0)
    stored.write_bytes(SpanChoice(window).to_json())
    spans = data_types.RuntimeParameter(name="spans", ptype=str)
    cloud = Cloud(gen(base, patterns, spans=spans), tmp_path)
    # What is delivered later is for the next run.
    write(base, f"{folder}train-2", [2])
    write_span(base, 2, 2)
    assert cloud.run(spans=str(stored))["span"] == (1 if folder else 0)
    assert users_of(tmp_path / "cloud" / "examples", "train") == [1]

    (tmp_path / "cloud/output.json").unlink()
    changed = write(base, f"{folder}train-1", [2])
    with pytest.raises(DataError, match="data files have changed since") as caught:
        cloud.run(spans=str(stored))
    assert list(caught.value.examples) == [str(changed)]


def test_a_scheduled_run_marks_data_that_is_not_new(tmp_path):
    from components import watermark
    from components.tfrecord_gen.settings import Schedule

    base, mark = tmp_path / "trips", str(tmp_path / "state" / "mark.json")
    (tmp_path / "state").mkdir()
    write_span(base, 1, 10)

    def run(name, stale_after_h=None):
        node = gen(base)
        schedule = Schedule(watermark=mark, stale_after_h=stale_after_h)
        node.exec_properties["schedule"] = schedule.model_dump_json()
        return Cloud(node, tmp_path / name).run()

    first = run("first")
    assert first["new_data"] == 1
    # The first run has failed, so its data is taken again.
    assert run("again")["new_data"] == 1
    watermark.advance(mark, first["data"])
    assert run("same")["new_data"] == 0
    report = json.loads((tmp_path / "same/cloud/quarantine/report.json").read_text())
    assert (report["records"], report["files"]) == (0, [])
    with pytest.raises(DataError, match="the newest file of the data is too old|span"):
        run("stale", stale_after_h=1e-9)
    write_span(base, 2, 20)
    # TFX's own driver runs first, and would fail on this one: not in every split.
    write(base, "span-3/train-00000-of-00001", [30])
    more = run("more")
    assert (more["new_data"], more["span"]) == (1, 2)
    assert users_of(tmp_path / "more" / "cloud" / "examples", "train") == [20]
