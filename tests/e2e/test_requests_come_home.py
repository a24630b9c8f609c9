"""Train, serve, record, compare, retrain, and go back: one circle."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pipeline.config.load import load_config
from runners.operations.models import rollback
from runners.operations.predict import predict
from serving.local_store import LocalModelStore

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

SPANS = "data.splits={train: 'span-{SPAN}/train*', eval: 'span-{SPAN}/eval*'}"


@contextmanager
def served(trips, *options: str) -> Iterator[str]:
    """Serves the pipeline; yields the address of REST."""
    command = [sys.executable, "-m", "runners.cli.main", "serve", "trips", "--json"]
    ports = ("--port", "0", "--grpc-port", "0")
    process = subprocess.Popen(
        [*command, *ports, *options], cwd=trips.root, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    ready = json.loads(process.stdout.readline())
    yield f"http://127.0.0.1:{ready['port']}"
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_the_drift_of_requests_is_a_reason_to_train(empty_trips):
    trips = empty_trips
    trips.settings += [
        *(SPANS, "data.serving=requests", "train.epochs=2", "train.batch_size=10"),
        "retrain.request_drift_above={fare: 0.3}",
    ]
    trips.fill("span-1", start=1000)
    first = trips.run()
    assert first.pushes[0].state == "pushed", trips.shown(first)
    config = load_config("trips", cwd=trips.root, overrides=trips.settings)
    records = [trips.example(n, fare=[90.0 + n], label=None) for n in range(40)]
    shifted = str(trips.write("asked", records))

    with served(trips, "--record", "1") as url:
        answers = [*predict(config, [shifted], url=url)]

    assert answers == [*predict(config, [shifted])]
    trips.fill("span-2", start=2000)
    second = trips.run()
    (row,) = second.gate_rows("retrain")
    assert (row.check, row.result) == ("request drift of 'fare'", "yes"), row
    assert row.why.endswith("40 examples against 20")
    assert second.pushes[0].version == 2
    # Of both ingestions that of the requests.
    report = trips.ingestion(second)
    assert report["splits"] == {"serving": 40}

    rollback(config, None, "too many alarms")
    one, _, three = LocalModelStore(trips.workspace.serving).versions()
    assert three.digest == one.digest
    with served(trips) as url:
        assert [*predict(config, [shifted], url=url)] == answers
