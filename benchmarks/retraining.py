"""Benchmark: a month of daily data through ``sluice retrain``, and two naive policies.

``python benchmarks/retraining.py [--folder DIR] [--days N] [--picture FILE]``

Each day the data of ``taxi_days`` is delivered as ``DAYS`` says, and each policy plays
it in a workspace of its own:

- *retrain*: ``sluice retrain``, with both gates, on a window of the newest days;
- *every day*: the same window and model, trained whatever comes, without any gate but
  the ingestion's own: a damaged file ends the run;
- *latest span*: likewise, on the newest day alone.

What is served at the end of a day is scored on the whole data of the following day.
Which days have been played stands in the tags of the runs: a killed benchmark goes on
where it was if it gets the same folder. At the end what must hold is checked.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from benchmarks import taxi_days  # noqa: E402
from benchmarks.policy_picture import draw  # noqa: E402
from benchmarks.taxi_days import DAYS, Days, deliveries, window  # noqa: E402
from components.tfrecord_gen.ingestion_report import Report  # noqa: E402
from serving.model_store import store_at  # noqa: E402
from sluice.compat import prepare_environment  # noqa: E402
from sluice.errors import DataError  # noqa: E402
from sluice.record.outcome import outcome, summarize  # noqa: E402
from sluice.record.run_record import RunOptions, RunRecord  # noqa: E402
from sluice.record.verdict import cell  # noqa: E402
from sluice.storage import digest  # noqa: E402
from sluice.tfrecords import tfrecord  # noqa: E402
from sluice.workspace import Workspace, workspaces_in  # noqa: E402

CONFIG = """
version: 1
name: trips
data:
  dir: data
  splits:
    train: "day-{SPAN}/v{VERSION}/train*"
    eval: "day-{SPAN}/v{VERSION}/eval*"
    test: "day-{SPAN}/v{VERSION}/test*"
examples: {window: 4}
label: {feature: big_tip, classes: [0, 1]}
features:
  fare: {kind: numeric}
  trip_miles: {kind: numeric}
  trip_start_hour: {kind: vocabulary}
  payment_type: {kind: vocabulary, oov_buckets: 1}
  company: {kind: hashed, buckets: 64}
model: wide_deep
train: {epochs: 8, batch_size: 64, learning_rate: 0.002}
evaluate:
  metrics: [AUC, ExampleCount]
  thresholds:
    - {metric: auc, lower_bound: 0.6}
    - {metric: auc, change: {direction: higher_is_better, absolute: -0.02}}
# Drift is a reason to train, and none to stop.
validate:
  rules:
    - {anomaly: drift, action: warn}
    - {anomaly: split_drift, action: warn}
retrain:
  min_new_examples: 8000
  drift_above: {fare: 0.005, company: 0.03, payment_type: 0.002, big_tip: 0.001}
"""
# The naive policies, and how many spans each trains on.
NAIVE = {"every day": 4, "latest span": 1}


def prepare(folder: Path) -> None:
    """Writes the project of the pipeline."""
    config = folder / "configs" / "trips.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(CONFIG)
    taxi_days.write_schema(folder / "schemas" / "trips" / "schema.pbtxt")


def play(folder: Path, days: Days, last: int) -> Iterator[RunRecord]:
    """Plays the days that have not been played, by ``sluice retrain``."""
    from pipeline.config.load import load_config
    from runners.operations.run import run

    before = played(folder)
    for day in range(1, last + 1):
        for delivery in deliveries(days, day):
            delivery.write(folder / "data")
        if day not in before:
            config = load_config("trips", cwd=folder)
            tags = [f"day={day}"]
            with workspaces_in(str(folder / "retrain")):
                yield run(config, RunOptions(workers=2), command="retrain", tags=tags)


def play_naively(folder: Path, days: Days, last: int, policy: str) -> Iterator[int]:
    """Trains on each day that has not been played, and yields the day."""
    from benchmarks.naive_training import train
    from pipeline.checks.check_config import validate_config
    from pipeline.config.load import load_config

    config = validate_config(load_config("trips", cwd=folder)).config
    for day in range(1, last + 1):
        output = folder / policy / f"{day}"
        if output.exists():
            continue
        part = output.with_name("part")
        shutil.rmtree(part, ignore_errors=True)
        chosen = window(days, day, NAIVE[policy])
        for delivery in chosen:
            delivery.write(folder / policy / "data")
        try:
            train(config, [x.folder(folder / policy / "data") for x in chosen], part)
        except DataError as error:
            part.mkdir(parents=True)
            (part / "error.txt").write_text(str(error))
        part.rename(output)
        yield day


def played(folder: Path) -> dict[int, RunRecord]:
    """Returns the runs that have ended, by day."""
    runs = sorted(Workspace(folder / "retrain" / "trips").runs.glob("2*"))
    records = [RunRecord.load_ended(run_dir) for run_dir in runs]
    ended = [x for x in records if x.status != "interrupted"]
    return dict(sorted((int(x.tags["day"]), x) for x in ended))


def trainings(records: Mapping[int, RunRecord]) -> dict[int, str]:
    """Returns the models by the day on which they were trained."""
    found: dict[str, int] = {}
    for day, record in records.items():
        for node in record.nodes:
            for uri in node.outputs.get("model", ()) if node.id == "Trainer" else ():
                found.setdefault(uri, day)
    return {day: uri for uri, day in found.items()}


def served(records: Mapping[int, RunRecord]) -> dict[int, str]:
    """Returns the served model at the end of each day, from the first on."""
    pushes = {
        day: records[day].pushes[0].uri or ""
        for day in trainings(records)
        if records[day].pushes[0].state == "pushed"
    }
    return _since(pushes, len(records))


def served_naively(folder: Path, policy: str, last: int) -> dict[int, str]:
    """Likewise, by a naive policy."""
    models = {day: folder / policy / f"{day}" / "model" for day in range(1, last + 1)}
    found = {day: str(model) for day, model in models.items() if model.exists()}
    return _since(found, last)


def _since(models: Mapping[int, str], last: int) -> dict[int, str]:
    days = range(min(models, default=last + 1), last + 1)
    return {day: models[max(x for x in models if x <= day)] for day in days}


def scores(folder: Path, models: Mapping[int, str]) -> dict[int, float]:
    """Returns the AUC of each day's served model on the trips of the following day."""
    from sklearn.metrics import roc_auc_score

    from serving.predictor import Predictor

    load = lru_cache(maxsize=1)(Predictor)
    found = {}
    for day, model in models.items():
        records = taxi_days.draw(day + 1)
        path = folder / "following_day.tfrecord"
        tfrecord.write(path, records)
        given: Any = [x.probabilities for x in load(model).predict_files([path])]
        likely = [x["1"] for x in given]
        found[day] = float(roc_auc_score(taxi_days.labels(records), likely))
    return found


def check(folder: Path, days: Days, records: Mapping[int, RunRecord]) -> list[str]:
    """Returns what does not hold of the days that ``sluice retrain`` has played."""
    return [
        *_check_trainings(days, records),
        *_check_versions(folder, records),
        *(
            f"no model is served on day {x}"
            for x in records
            if x not in served(records)
        ),
    ]


def _check_trainings(days: Days, records: Mapping[int, RunRecord]) -> Iterator[str]:
    """No bad data is trained on, and what is trained on again stands in a row."""
    every = (x for day in records for x in deliveries(days, day))
    bad = {(x.span, x.version) for x in every if x.is_bad}
    before: set[tuple[int, int]] = set()
    for day in trainings(records):
        spans = _spans(records[day])
        if bad & spans:
            yield f"day {day} was trained on bad data: {bad & spans}"
        known, fresh = {span for span, _ in before}, spans - before
        said = {
            "new spans": sorted(span for span, _ in fresh if span not in known),
            "delivered again": sorted(span for span, _ in fresh if span in known),
        }
        parts = [f"{key}: {', '.join(map(str, x))}" for key, x in said.items() if x]
        why = "; ".join(parts)
        row = records[day].gate_rows("retrain")[0]
        if row.why != (why if before else "no model is served yet") or not why:
            yield f"day {day} was trained on {why!r}, and its row says {row.why!r}"
        if records[day].pushes[0].state == "pushed":
            before = spans


def _check_versions(folder: Path, records: Mapping[int, RunRecord]) -> Iterator[str]:
    """Each served version names its run, and that the files that it has read."""
    workspace = Workspace(folder / "retrain" / "trips")
    runs = {record.run_id: record for record in records.values()}
    versions = store_at(workspace.serving).versions()
    pushed = {records[day].pushes[0].version for day in trainings(records)} - {None}
    if {x.version for x in versions} != pushed:
        yield f"versions {[x.version for x in versions]} are not the pushed {pushed}"
    for version in versions:
        record = runs[version.facts["pipeline_run_id"]]
        (uri,) = record.node("TFRecordGen").outputs["quarantine"]
        files = Report.load(uri).files
        if not version.is_intact() or {(x.span, x.version) for x in files} != _spans(
            record
        ):
            yield f"version {version.version} is not of {_spans(record)}"
        for file in files:
            if digest.of_file(file.path) != file.sha256:
                yield f"version {version.version} has read another {file.path}"


def _spans(record: RunRecord) -> set[tuple[int, int]]:
    return {(x["span"], x["version"]) for x in record.spans["data"]}


def why(record: RunRecord) -> str:
    """Returns why a run has trained, or has not, in a line."""
    if record.status == "up_to_date":
        return "nothing has changed"
    reasons = [row for row in record.gate_rows("retrain") if row.result == "yes"]
    said = [
        f"{row.check} {cell(row.actual)}, limit {row.limit}: {row.why}"
        if row.comparison
        else row.why
        for row in reasons
    ]
    return "; ".join(said or summarize(record)[2])


def _marks(records: Mapping[int, RunRecord]) -> dict[int, str]:
    """Returns ``trained``, ``not trained`` or ``stopped`` by day."""
    trained = trainings(records)
    return {
        day: "stopped"
        if record.status == "blocked"
        else "trained"
        if day in trained
        else "not trained"
        for day, record in records.items()
    }


def _naive_marks(folder: Path) -> dict[int, str]:
    found = {int(x.name): x / "model" for x in folder.glob("[0-9]*")}
    return {day: "trained" if x.exists() else "stopped" for day, x in found.items()}


def main() -> None:
    """Plays, prints and checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="default: a temporary one")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--picture", type=Path, help="an SVG file")
    arguments = parser.parse_args()
    folder, last = arguments.folder, arguments.days
    folder = (folder or Path(tempfile.mkdtemp(prefix="sluice-retraining-"))).resolve()
    prepare_environment()
    prepare(folder)
    for record in play(folder, DAYS, last):
        print(f"day {record.tags['day']}: {outcome(record)}", flush=True)
    for policy in NAIVE:
        for day in play_naively(folder, DAYS, last, policy):
            print(f"day {day}: {policy}", flush=True)
    records = played(folder)
    models = {"retrain": served(records)}
    models |= {policy: served_naively(folder, policy, last) for policy in NAIVE}
    auc = {policy: scores(folder, found) for policy, found in models.items()}
    for day, record in records.items():
        title, _ = DAYS.get(day, ("", ()))
        values = "  ".join(f"{found.get(day, 0):.3f}" for found in auc.values())
        became = outcome(record)
        print(f"{day:>2}  {title:<16}{became:<20}{values}  {why(record)[:110]}")
    marks = {"retrain": _marks(records), **{x: _naive_marks(folder / x) for x in NAIVE}}
    for policy, found in auc.items():
        count = [*marks[policy].values()].count("trained")
        mean, worst = statistics.mean(found.values()), min(found.values())
        print(f"{policy:<12} {count} trainings, AUC {mean:.3f}, worst day {worst:.3f}")
    if arguments.picture:
        titles = {day: title for day, (title, _) in DAYS.items() if day <= last}
        arguments.picture.write_text(draw(titles, auc, marks))
    if broken := check(folder, DAYS, records):
        sys.exit("\n".join(broken))
    print("every check holds")


if __name__ == "__main__":
    main()
