"""What documents say of artifacts that TFDV, TFMA and TensorFlow have written."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import json_format, text_format
from PIL import Image

from reports.charts.bars import Distribution, common_edges
from reports.evaluation import read_metrics, read_plots
from reports.feature_statistics import statistics
from reports.read_run import RunData
from runners.documents import protos
from runners.documents.examples import predicted_class
from runners.documents.mistakes import mistakes
from runners.documents.write import write_documents
from sluice.mlmd_items import Artifact
from sluice.privacy import Privacy
from sluice.project import own_root
from sluice.record.parts import NodeEnd
from sluice.record.run_record import RunRecord
from tests.kit.exported_models import example, export_model, write_examples

AS_WRITTEN = {"preserving_proto_field_name": True}
ROWS = {
    "fare": [0.0, 2.5, 10.0, 40.0, None, 7.0],
    "company": ["Flash", "Flash", "Blue", "Flash", "Blue", None],
    "trips": [1, 2, 3, 4, 5, 6],
}
SECRETS = ("40", "Flash", "Blue")


@pytest.fixture(scope="module")
def analyzed(tmp_path_factory):
    """Statistics, a schema and anomalies, as TFX's nodes write them."""
    import pandas
    import tensorflow_data_validation as tfdv

    folder = tmp_path_factory.mktemp("artifacts")
    found = tfdv.generate_statistics_from_dataframe(pandas.DataFrame(ROWS))
    schema = tfdv.infer_schema(found)
    (folder / "schema.pbtxt").write_text(text_format.MessageToString(schema))
    schema.string_domain[0].value.remove("Flash")
    schema.feature[0].float_domain.max = 8.0
    anomalies = tfdv.validate_statistics(found, schema)
    (folder / "Split-train").mkdir()
    for name, proto in (("FeatureStats", found), ("SchemaDiff", anomalies)):
        path = folder / "Split-train" / f"{name}.pb"
        path.write_bytes(proto.SerializeToString())
    return folder


@pytest.mark.tf
def test_statistics_are_those_of_tfdv(analyzed, monkeypatch):
    found = protos.statistics(analyzed, ["train"], [])
    read = {item.name: item for item in _read(found, monkeypatch)}
    fare, company, trips = (read[name] for name in ROWS)
    assert (fare.type, fare.numbers["present"], fare.numbers["missing"]) == (
        "FLOAT",
        5,
        1,
    )
    assert fare.numbers["min"] == 0 and fare.numbers["max"] == 40
    assert fare.numbers["zeros"] == 1 and fare.numbers["mean"] == pytest.approx(11.9)
    assert fare.cumulative()[1][-1] == pytest.approx(1.0)
    assert company.top_values == {"Flash": 3, "Blue": 2}
    assert company.numbers["unique"] == 2 and company.type == "STRING"
    assert trips.type == "INT" and trips.numbers["median"] in (3, 4)


def _read(document, monkeypatch, **privacy):
    (split,) = _read_splits(document, monkeypatch, **privacy)
    return split.features


def _read_splits(document, monkeypatch, **privacy):
    document = {"node": "S", "privacy": privacy, **json.loads(json.dumps(document))}
    run = RunData(Path(), RunRecord("r", "p"))
    monkeypatch.setattr(run, "documents", lambda kind: [document])
    return list(statistics(run))


@pytest.mark.tf
def test_drawn_shares_are_those_of_the_records(monkeypatch):
    """Found: edges of each split's own, of ten buckets; 17 % was drawn for 10 %."""
    import numpy as np
    import pandas
    import tensorflow_data_validation as tfdv

    from pipeline.config.load import load_config
    from pipeline.graph.arguments import GraphContext, of_statistics_gen

    config = load_config(str(own_root() / "configs" / "taxi.yaml"))
    nowhere: Any = None
    context = GraphContext(config, nowhere)
    options = of_statistics_gen(context)["stats_options"]
    chance = np.random.default_rng(1)
    values = {
        split: {
            "fare": chance.choice([3.25, *chance.lognormal(2.0, 0.8, 50)], size),
            "longitude": chance.normal(-87.6, 0.05 + size / 1e6, size),
            "area": chance.integers(1, 78, size),
            "hour": chance.integers(0, 24, size),
        }
        for split, size in (("train", 10_000), ("eval", 2_000))
    }
    splits = {}
    for split, columns in values.items():
        frame = pandas.DataFrame(columns)
        found = tfdv.generate_statistics_from_dataframe(frame, stats_options=options)
        (dataset,) = json_format.MessageToDict(found, **AS_WRITTEN)["datasets"]
        splits[split] = dataset
    read = _read_splits({"splits": splits}, monkeypatch)
    for index, name in enumerate(values["train"]):
        data = [
            Distribution(x.split, *x.features[index].cumulative() or ((), ()))
            for x in read
        ]
        edges, _ = common_edges(data, is_whole=read[0].features[index].is_whole)
        for item in data:
            inner = np.searchsorted(edges[1:-1], values[item.name][name])
            counts = np.bincount(inner, minlength=len(edges) - 1)
            true = counts / counts.sum()
            assert np.abs(item.shares(edges) - true).max() < 0.0055, (name, item.name)
    for found in read:
        counts = np.bincount(values[found.split]["area"]) / found.examples
        drawn = found.features[2].shares()
        assert len(drawn) > 50
        for text, share in drawn.items():
            assert share == pytest.approx(counts[int(text)], abs=0.0055), text


@pytest.mark.tf
def test_values_of_sensitive_features_are_nowhere(analyzed, monkeypatch):
    sensitive = list(ROWS)
    counted = protos.statistics(analyzed, ["train"], sensitive)
    found = [
        counted,
        protos.anomalies(analyzed, ["train"], sensitive),
        protos.schema(analyzed, sensitive),
    ]
    assert not [text for text in SECRETS if text in json.dumps(found)]
    company = _read(counted, monkeypatch, sensitive=sensitive)[1]
    assert company.sensitive
    assert company.numbers == {"present": 5, "missing": 1, "unique": 2}
    features = found[2]["schema"]["feature"]
    assert [item["name"] for item in features] == list(ROWS)
    known = protos.anomalies(analyzed, ["train"], [])
    texts = json.dumps(known["splits"]["train"]["anomaly_info"])
    assert "Flash" in texts and "40" in texts


EVALUATION = """
model_specs { label_key: "label" prediction_key: "prediction" }
slicing_specs {}
slicing_specs { feature_keys: "company" }
metrics_specs {
  metrics { class_name: "AUC" }
  metrics { class_name: "ExampleCount" }
  metrics { class_name: "CalibrationPlot" }
}
"""


@pytest.mark.tf
def test_metrics_are_those_of_tfma(tmp_path):
    import pandas
    import tensorflow_model_analysis as tfma
    from tensorflow_model_analysis.proto import config_pb2

    data = pandas.DataFrame(
        {
            "label": [0, 1, 1, 0] * 5,
            "prediction": [0.1, 0.9, 0.4, 0.6] * 5,
            "company": ["Flash", "Blue"] * 10,
        }
    )
    config = text_format.Parse(EVALUATION, config_pb2.EvalConfig())
    result = tfma.analyze_raw_data(data, config, output_path=str(tmp_path))
    document = json.loads(json.dumps(protos.metrics(tmp_path)))
    found = {(x.slice, x.name): x.value for x in read_metrics(document)}
    expected = {
        (": ".join(key[0]) if key else "overall", name): value["doubleValue"]
        for key, outputs in result.slicing_metrics
        for name, value in outputs[""][""].items()
    }
    assert found == pytest.approx(expected)
    assert found["overall", "example_count"] == 20
    ((_, tables),) = read_plots(document)
    assert tables["calibration_histogram_buckets"]["buckets"]


def _red():
    content = io.BytesIO()
    Image.new("RGB", (9, 5), "red").save(content, "png")
    return content.getvalue()


RED = _red()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return export_model(tmp_path_factory.mktemp("model"), [1.0, 1.0, 1.0])


@pytest.fixture(scope="module")
def baseline(tmp_path_factory):
    """Another model: it overrates the first class, and underrates the third."""
    return export_model(tmp_path_factory.mktemp("baseline"), [10.0, 1.0, 0.2])


EVALUATED = [
    example(scores=[0.1, 0.8, 0.1], label=1),
    example(scores=[0.5, 0.3, 0.2], label=1, image=RED),
    example(scores=[0.0, 0.0, 1.0]),
    example(scores=[0.0, 0.25, 0.75], label=1, company=b"Flash", tag=b"\xff"),
]


@pytest.mark.tf
def test_the_most_confident_mistakes_come_first(tmp_path, model):
    item = write_examples(tmp_path, train=[], eval=EVALUATED)
    found: Any = mistakes([str(model)], item, ["eval"], Privacy(label="label"))
    first, second = found["mistakes"]
    assert (found["examples"], found["wrong"], found["complete"]) == (3, 2, True)
    assert (first["true"], first["predicted"], first["record"]) == ("1", "2", 4)
    assert (first["probability"], first["true_probability"]) == (0.75, 0.25)
    assert first["values"] == {
        "company": ["Flash"],
        "scores": [0.0, 0.25, 0.75],
        "tag": ["\N{REPLACEMENT CHARACTER}"],
    }
    assert [image["feature"] for image in second["images"]] == ["image"]
    hidden = Privacy(sensitive=["company", "image"], label="label")
    found = mistakes([str(model)], item, ["eval"], hidden)
    assert not {"Flash", "data:image"} & {*json.dumps(found).split('"')}
    found = mistakes([str(model)], item, ["eval"], Privacy(private=True, label="label"))
    assert (found["wrong"], found["mistakes"]) == (2, [])
    assert mistakes([str(model)], item, ["eval"], Privacy()) is None, "not our pipeline"


# All of class 1, with what the model and the baseline predict.
COMPARED = [
    example(scores=[0.1, 0.8, 0.1], label=1, image=RED),  # 1 and 0: newly right
    example(scores=[0.5, 0.3, 0.2], label=1),  # 0 and 0
    example(scores=[0.0, 0.45, 0.55], label=1),  # 2 and 1: newly wrong
    example(scores=[0.0, 0.25, 0.75], label=1, company=b"Flash"),  # the same
    example(scores=[0.0, 0.9, 0.1], label=1),  # 1 and 1
]


@pytest.mark.tf
def test_candidate_and_baseline_are_compared_example_byexample(
    tmp_path, model, baseline
):
    item = write_examples(tmp_path, train=[], eval=COMPARED)
    uris = [str(model), str(baseline)]
    found: Any = mistakes(uris, item, ["eval"], Privacy(label="label"))
    flips, predictions = found["flips"], found["predictions"]
    assert {name: n for name, n in flips.items() if name != "examples"} == {
        **{"newly_wrong": 2, "newly_right": 1, "both_wrong": 1, "both_right": 1}
    }
    surest, other = flips["examples"]["newly_wrong"]
    assert (surest["record"], surest["probability"], other["record"]) == (4, 0.75, 3)
    assert (surest["predicted"], surest["baseline"], surest["true"]) == ("2", "1", "1")
    assert surest["values"]["company"] == ["Flash"]
    (right,) = flips["examples"]["newly_right"]
    assert (right["predicted"], right["baseline"]) == ("1", "0")
    assert [image["feature"] for image in right["images"]] == ["image"]
    assert predictions["true"] == (1, 1, 1, 1, 1)
    assert predictions["candidate"] == (1, 0, 2, 2, 1)
    assert predictions["baseline"] == (0, 0, 1, 1, 1)
    assert predictions["digests"][3] == surest["digest"]
    assert len({*predictions["digests"]}) == 5


@pytest.mark.tf
def test_flips_show_no_more_of_the_data_than_mistakes(tmp_path, model, baseline):
    item = write_examples(tmp_path, train=[], eval=COMPARED)
    uris = [str(model), str(baseline)]
    sensitive = Privacy(sensitive=["company", "image", "scores"], label="label")
    found: Any = mistakes(uris, item, ["eval"], sensitive)
    (right,) = found["flips"]["examples"]["newly_right"]
    assert (right["images"], right["values"], right["digest"]) == ([], {}, None)
    # Who knows a record but for one value finds that by trying digests.
    assert found["predictions"] is None
    private = Privacy(private=True, label="label")
    found = mistakes(uris, item, ["eval"], private)
    assert found["predictions"] is None and found["flips"]["newly_wrong"] == 2
    assert found["flips"]["examples"] == {"newly_wrong": [], "newly_right": []}


@pytest.mark.tf
def test_the_baseline_is_the_one_that_the_evaluator_was_given(
    tmp_path, model, baseline
):
    """A model that is its own baseline is an input under one key only."""
    examples = write_examples(tmp_path, train=[], eval=COMPARED)
    other = export_model(tmp_path / "other", [1.0, 1.0, 1.0], ("1", "0", "2"))
    shown = {"private": False, "sensitive": [], "label": {"feature": "label"}}
    (tmp_path / "config.json").write_text(json.dumps({"config": shown}))

    def flips(**uris):
        inputs = {key: [_artifact("Model", uri)] for key, uri in uris.items()}
        end = NodeEnd("Evaluator", "ran", inputs={**inputs, "examples": [examples]})
        end.outputs["evaluation"] = [_artifact("ModelEvaluation", tmp_path / "none")]
        write_documents(end, tmp_path, tmp_path / "documents", {})
        (path,) = [x.path for x in end.documents if x.kind == "mistakes"]
        return json.loads((tmp_path / path).read_text()).get("flips", "absent")

    assert flips(model=model, baseline_model=baseline)["newly_wrong"] == 2
    assert flips(model=model, baseline_model=other) is None, "other classes"
    assert flips(model=model, baseline_model=tmp_path / "absent") == "absent"
    assert flips(baseline_model=model) == "absent"


@pytest.mark.parametrize(
    ("probabilities", "threshold", "index"),
    [
        ((0.6, 0.4), 0.5, 0),
        ((0.5, 0.5), 0.5, 1),
        ((0.7, np.float32(0.3)), 0.3, 1),
        ((0.7, np.float32(0.3)), 0.31, 0),
        ((0.2, 0.4, 0.4), 0.5, 1),
    ],
)
def test_the_predicted_class_is_that_of_the_served_model(
    probabilities, threshold, index
):
    """The export takes the second of two classes from there on, of more the first."""
    assert predicted_class(probabilities, threshold) == index


def _artifact(kind, uri):
    return Artifact(7, kind, str(uri))
