"""What documents say of artifacts that TFDV, TFMA and TensorFlow have written."""

import io
import json
from base64 import b64decode
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
from runners.documents import images, protos
from runners.documents.examples import predicted_class
from runners.documents.mistakes import mistakes
from runners.documents.texts import texts
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


def _picture(colour, size=(9, 5), kind="png"):
    content = io.BytesIO()
    Image.new("RGB", size, colour).save(content, kind)
    return content.getvalue()


RED, BLUE = _picture("red"), _picture("blue", (64, 64), "jpeg")


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Reading ends after a second, which a busy machine may take for nothing."""
    monkeypatch.setattr(images, "MAX_SECONDS", 60.0)


@pytest.mark.unit
def test_images(tmp_path):
    labelled = Privacy(label="label")
    train = [example(image=RED, label=1), example(image=BLUE, label=0)]
    train += [example(image=RED, label=1), example(image=b"\x89PNG\r\n\x1a\n?")]
    item = write_examples(tmp_path, train=train, eval=[example(image=RED, label=1)])
    found: Any = images.samples(item, labelled)
    json.dumps(found)
    assert (found["records"], found["complete"]) == ({"train": 4, "eval": 1}, True)
    (feature,) = found["features"]
    counts = {x["split"]: (x["images"], x["sizes"]) for x in feature["splits"]}
    sizes = {"PNG 9 x 5": 2, "JPEG 64 x 64": 1}
    assert counts == {"train": (3, sizes), "eval": (1, {"PNG 9 x 5": 1})}
    assert [row["class"] for row in feature["gallery"]] == ["0", "1"]
    shown = feature["gallery"][1]["images"][0]
    assert shown["data"].startswith("data:image/png;base64,")
    assert (shown["record"], shown["width"], shown["split"]) == (1, 9, "train")


@pytest.mark.tf
def test_an_image_is_also_shown_as_the_model_gets_it(tmp_path):
    fit = {"height": 9, "width": 9, "channels": 1, "resize": "fit"}
    item = write_examples(tmp_path, train=[example(image=RED)])
    found: Any = images.samples(item, Privacy(images={"image": fit}))
    shown = found["features"][0]["decoded"][0]
    pixels = Image.open(io.BytesIO(b64decode(shown["data"].partition(",")[2])))
    # Of 9 x 5 pixels, with two rows of margin above and below.
    assert [pixels.getpixel((4, y)) for y in range(9)] == [0, 0, *[76] * 5, 0, 0]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([[b"cat", b"dog"], [b"dog"], None], ["cat, dog", "dog", None]),
        ([[0, 1, 1], [1, 0, 0], [0, 1, 1]], ["0, 1, 1", "1, 0, 0"]),
        ([2.5, 1.25, 7.0], [""]),
    ],
)
def test_samples_are_grouped_by_all_labels_and_not_by_numbers(
    tmp_path, labels, classes
):
    records = [
        example(
            image=_picture((i, 0, 0)), **({} if label is None else {"label": label})
        )
        for i, label in enumerate(labels)
    ]
    item = write_examples(tmp_path, train=records, eval=[example(image=RED, label=9)])
    found: Any = images.samples(item, Privacy(label="label"))
    gallery = {row["class"]: row["images"] for row in found["features"][0]["gallery"]}
    gallery.pop("9")
    assert [*gallery] == classes
    assert sum(map(len, gallery.values())) == 3


@pytest.mark.unit
@pytest.mark.parametrize(
    ("privacy", "expected"),
    [
        (Privacy(private=True), "nothing"),
        (Privacy(sensitive=["image"]), "counts"),
        (Privacy(), "all"),
    ],
)
def test_images_that_may_not_be_shown(tmp_path, privacy, expected):
    item = write_examples(tmp_path, train=[example(image=RED)] * 2)
    found: Any = images.samples(item, privacy)
    assert ("data:image" in json.dumps(found)) == (expected == "all")
    assert bool(found["features"]) == (expected != "nothing")


@pytest.mark.unit
def test_a_thumbnail_is_small_and_has_nothing_else_of_the_file():
    secret = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "SECRET"
    Image.effect_noise((900, 600), 90).save(secret, "jpeg", exif=exif)
    assert b"SECRET" in secret.getvalue()
    found = _described(secret.getvalue())
    assert (found["width"], found["height"], found["format"]) == (900, 600, "JPEG")
    assert len(found["data"]) < 4100
    assert _described(RED[:-30])["data"] is None


def _described(data):
    image = images.open_image(data)
    assert image is not None
    return images.describe_image(image)


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


@pytest.mark.unit
def test_examples_without_images_and_reading_within_limits(tmp_path, monkeypatch):
    item = write_examples(tmp_path / "a", train=[example(text=b"BMW", number=1)] * 200)
    assert images.samples(item, Privacy()) is None
    monkeypatch.setattr(images, "MAX_RECORDS", 10)
    item = write_examples(tmp_path / "b", train=[example(image=RED)] * 50)
    found: Any = images.samples(item, Privacy())
    assert (found["records"], found["complete"]) == ({"train": 10}, False)


@pytest.mark.tf
def test_words_that_the_vocabulary_lacks(tmp_path):
    served = tmp_path / "model" / "Format-Serving"
    (served / "assets").mkdir(parents=True)
    for name in ("review_xf", "id_xf"):
        (served / "assets" / name).write_bytes(b"good\nbad\n")
    (served / "assets.extra").mkdir()
    features = {"review": {"kind": "text"}, "id": {"kind": "text"}}
    content = {"features": features, "label": {"feature": "label", "classes": [0, 1]}}
    (served / "assets.extra" / "features.json").write_text(json.dumps(content))
    test = [example(review=b"Good, good; BAD"), example(review=b"ugly")]
    item = write_examples(tmp_path, train=[example(review=b"bad good")], test=test)
    found: Any = texts([str(tmp_path / "model")], item, ["test"], Privacy())
    assert [*found["features"]] == ["review"], "the other one is in no record"
    assert found["features"]["review"]["train"]["unknown"] == 0
    assert found["features"]["review"]["test"] == {
        "texts": 2,
        "characters": [9.5, 15],
        "words": [2, 3],
        "unknown": 0.25,
        "top": [["good", 2], ["bad", 1], ["ugly", 1]],
    }
    private: Any = texts([str(tmp_path / "model")], item, [], Privacy(private=True))
    assert private["features"]["review"]["test"]["top"] == []
    hidden = Privacy(sensitive=["review"])
    assert texts([str(tmp_path / "model")], item, ["test"], hidden) is None
