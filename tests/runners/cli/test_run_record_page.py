"""``docs/run_record.md`` lists every key of the record, and no other."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from google.protobuf import text_format
from PIL import Image
from tensorflow_metadata.proto.v0.statistics_pb2 import DatasetFeatureStatisticsList

from runners.local import document_content
from runners.local.document_content import DescribedNode
from runners.local.write_documents import write_documents
from sluice.node_kinds import DOCUMENTS
from sluice.project import own_root
from sluice.record import events, run_record, verdict
from sluice.record.documents import (
    anomalies_document,
    duplicate_images,
    epochs_document,
    feature_statistics,
    metrics_document,
)
from sluice.record.documents import mistakes_document as mistakes
from sluice.record.documents import model_document as model
from sluice.record.documents import samples_document as samples
from sluice.record.documents import schema_document as schema
from sluice.record.documents import statistics_document as statistics
from sluice.record.documents.metric_value import TABLES
from sluice.record.documents.privacy import Privacy
from sluice.tfrecords import tfrecord
from sluice.tfrecords.tf_example_pb2 import Example

pytestmark = pytest.mark.unit

PAGE = own_root() / "docs" / "run_record.md"

# What all events have.
_COMMON = {"at", "event"}

# The text just before a table, and what the table describes.
TABLES_OF: dict[str, type] = {
    "### error": run_record.ErrorRecord,
    "### nodes": run_record.NodeRecord,
    "Each row:": verdict.Check,
    "### pushes": run_record.PushRecord,
    "### artifacts": run_record.ArtifactRecord,
    "### documents": run_record.DocumentRecord,
}
# ``tests/sluice/record/documents/test_metrics_document.py`` checks those of metrics.
STATISTICS = """
  datasets {
    features { path { step: "fare" } type: FLOAT num_stats {
      common_stats { num_non_missing: 1 }
      histograms { buckets { high_value: 1 sample_count: 1 } }
    } }
    features { path { step: "payment" } type: STRING string_stats {
      top_values { value: "Cash" frequency: 1 }
      rank_histogram { buckets { label: "Cash" sample_count: 1 } }
    } }
    features { path { step: "image" } type: BYTES bytes_stats {} }
  }
"""


def _first_column(before: str) -> set[str]:
    """Returns the names in the first column of the table after a line of the page."""
    lines = iter(PAGE.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.startswith(before):
            break
    names: set[str] = set()
    for line in lines:
        if line.startswith("| `"):
            names.update(re.findall(r"`([^`]+)`", line.split("|")[1]))
        elif names:
            break
    return names


def _keys(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def _epochs_file(directory: Path) -> dict[str, Any]:
    (directory / "history.json").write_text('{"loss": [1.0]}')
    outputs = {
        "run": [{"id": 1, "type": "ModelRun", "uri": str(directory), "properties": {}}]
    }
    (record,) = write_documents(DescribedNode("Trainer", outputs), directory)
    return json.loads((directory / record.path).read_text())


@pytest.mark.parametrize("before", TABLES_OF)
def test_a_table_lists_the_keys_of_its_type(before: str) -> None:
    assert _first_column(before) == _keys(TABLES_OF[before])


def test_run_keys() -> None:
    record = run_record.RunRecord("", "", "", "").to_dict()
    assert _first_column("## run.json") == set(record)


def test_gate_keys() -> None:
    assert _first_column("### gates") == set(verdict.Verdict("data", ()).to_dict())


def test_keys_of_all_documents(tmp_path: Path) -> None:
    document = _epochs_file(tmp_path)
    assert _first_column("Each file has") == set(document)
    (artifact,) = document["artifacts"]
    epochs = epochs_document.epochs_document(tmp_path)
    assert epochs and _first_column("### epochs") == set(epochs)
    keys = set(artifact) - _first_column("### epochs")
    assert _first_column("Each artifact has") == keys


def _built(folder: Path) -> dict[str, Any]:
    """Returns parts of the documents by the text just before their table."""
    (folder / "schema.pbtxt").write_text('feature { name: "fare" }')
    described = schema.schema_document(folder)
    png = io.BytesIO()
    Image.new("L", (8, 8), 200).save(png, "png")
    example = Example()
    example.features.feature["image"].bytes_list.value.append(png.getvalue())
    (folder / "Split-train").mkdir()
    tfrecord.write(folder / "Split-train" / "data.gz", [example.SerializeToString()])
    (folder / "statistics" / "Split-train").mkdir(parents=True)
    parsed = text_format.Parse(STATISTICS, DatasetFeatureStatisticsList())
    written = folder / "statistics" / "Split-train" / "FeatureStats.pb"
    written.write_bytes(parsed.SerializeToString())
    counted = statistics.statistics_document(folder / "statistics", ["train"])
    fare, payment, image = counted["splits"][0]["features"]
    (top,), (ranked,) = (
        payment["string"][name] for name in ("top_values", "rank_histogram")
    )
    assert set(top) == set(ranked)
    found = samples.samples_document(
        str(folder), {"split_names": '["train"]'}, Privacy()
    )
    saved = model.model_document(str(folder), None, lambda *_: None)
    assert described and found and saved
    (feature,) = found["features"]
    exact = {**feature["duplicates"]["exact"]}
    return {
        "### statistics": counted,
        "Each split:": counted["splits"][0],
        "Each feature:": fare,
        "In `numeric`:": fare["numeric"],
        "In a histogram:": fare["numeric"]["histogram"],
        "In `string`,": payment["string"],
        "In both lists:": top,
        "In `bytes`,": image["bytes"],
        "### samples": found,
        "An image feature has:": feature,
        "A split of an image feature has:": feature["splits"][0],
        "`exact` and `near` each have:": exact,
        "### schema": described,
        "A feature of the schema has:": described["features"][0],
        "### model": saved,
    }


def test_each_kind_of_document_is_listed() -> None:
    kinds = {kind for kinds in DOCUMENTS.values() for kind in kinds}
    assert kinds == set(document_content.CONTENTS)
    assert _first_column("| kind | of the artifact type") == kinds


def test_keys_of_parts_of_documents(tmp_path: Path) -> None:
    for before, part in _built(tmp_path).items():
        assert _first_column(before) == set(part), before


def test_journal_events() -> None:
    kinds = {kind.event: kind for kind in get_args(events.Event)}
    assert _first_column("| event | with") == set(kinds)
    assert _first_column("### node_finished") == _keys(events.NodeFinished) - _COMMON
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for name, kind in kinds.items():
        (row,) = (line for line in lines if line.startswith(f"| `{name}` |"))
        for key in _keys(kind) - _COMMON if name != "node_finished" else ():
            assert f"`{key}`" in row, (name, key)


def test_states_and_fixed_names_are_listed() -> None:
    page = PAGE.read_text(encoding="utf-8")
    plots = TABLES.keys() - {"value_at_cutoffs"}
    failure = {field.name for field in dataclasses.fields(events.NodeFailure)}
    for name in (
        *get_args(run_record.RunStatus),
        *get_args(run_record.NodeState),
        *get_args(run_record.PushState),
        *plots,
        *failure,
    ):
        assert f"`{name}`" in page, name


def test_limits_equal_those_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for sentence in (
        f"list, at most {statistics.MAX_FEATURES}",
        f"more than {feature_statistics.MAX_BUCKETS}",
        f"at most {feature_statistics.MAX_TOP_VALUES}, the most",
        f"more than {feature_statistics.MAX_RANKS}",
        f"cut to {feature_statistics.MAX_TEXT_CHARS} characters",
        f"at most {metrics_document.MAX_METRIC_ROWS} rows",
        f"at most {metrics_document.MAX_TABLE_ROWS:,} rows",
        f"at most the last {epochs_document.MAX_EPOCHS:,}",
        f"list, at most {document_content.MAX_SUGGESTIONS}, of",
        f"at most {anomalies_document.MAX_ANOMALIES} per split",
        f"at most {schema.MAX_FEATURES}, in the schema's order",
        f"`values` (at most {schema.MAX_VALUES})",
        f"at most {samples.MAX_FEATURES}",
        f"at most {samples.MAX_SIZES}",
        f"list, at most {duplicate_images.MAX_GROUPS} groups",
        f"a list of at most {duplicate_images.MAX_GROUP_IMAGES},",
        f"in at most {duplicate_images.MAX_DISTANCE} bits",
        f"by {duplicate_images.MAX_GRAY_DIFFERENCE} of 255",
        f"the largest first, at most {model.MAX_FILES}",
        f"list, at most {model.MAX_LAYERS}, null",
        f"list, at most {model.MAX_VARIABLES}: `name`",
        f"list, at most {mistakes.MAX_MISTAKES}, the most confident",
        f"at most {mistakes.MAX_FEATURES}: a number",
        f"a list of at most {mistakes.MAX_VALUES},",
    ):
        assert sentence in text
