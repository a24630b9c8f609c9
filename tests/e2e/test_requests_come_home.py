"""Train, serve, record, compare, retrain, and go back: one circle."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.config.load import load_config
from runners.operations.find_run import FoundRun
from runners.operations.models import rollback
from runners.operations.predict import predict
from runners.ui.run_view import pipeline_card
from serving.local_store import LocalModelStore
from sluice.project import own_root
from sluice.record.run_record import RunRecord
from sluice.workspace import locate
from tests.kit.ports import free_ports

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
        "retrain.request_drift_above={fare: 0.3, prediction: 1}",
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
    row, predicted = second.gate_rows("retrain")
    assert (row.check, row.result) == ("request drift of 'fare'", "yes"), row
    assert row.why.endswith("40 examples against 20")
    assert predicted.check == "request drift of 'prediction'", predicted
    assert "40 examples against " in predicted.why
    assert second.pushes[0].version == 2
    changed, largest, _ = second.gate_rows("serving")[-3:]
    assert (changed.check, largest.check) == ("changed answers", "largest change")
    assert changed.why.startswith("all 40 recorded requests, of 20"), changed
    # Of both ingestions that of the requests.
    report = trips.ingestion(second)
    assert report["splits"] == {"serving": 40}

    rollback(config, None, "too many alarms")
    one, _, three = LocalModelStore(trips.workspace.serving).versions()
    assert three.digest == one.digest
    with served(trips) as url:
        assert [*predict(config, [shifted], url=url)] == answers


BLOCKS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_page_on_serving(tmp_path, project):
    text = (own_root() / "docs" / "serving.md").read_text()
    circle = text[text.index("## One circle") : text.index("## The server")]
    script = "\n".join(BLOCKS.findall(circle))
    (port,) = free_ports(1)
    here = {
        "make demo": "sluice data make digits && sluice run digits",
        ".venv/bin/python": "python",
        "sluice serve digits": f"sluice serve digits --port {port} --grpc-port 0",
        "localhost:8501": f"localhost:{port}",
    }
    for written, other in here.items():
        assert written in script
        script = script.replace(written, other)
    root = tmp_path / "digits"
    for folder in ("configs", "schemas"):
        shutil.copytree(project / folder, root / folder)
    done = subprocess.run(
        # A server that is left would keep the pipes open.
        [
            "bash",
            "-euo",
            "pipefail",
            "-c",
            "trap 'jobs -p | xargs -r kill' EXIT\n" + script,
        ],
        cwd=root,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SLUICE_WORKSPACE": "",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '{"label": ["7"]' in done.stdout.replace("\n", ""), done.stdout

    workspace = locate(root, "digits")
    run_dir = workspace.run_dir(workspace.run_ids()[-1])
    record = RunRecord.load(run_dir)
    (reason,) = record.gate_rows("retrain")
    assert (reason.check, reason.result) == ("request drift of 'image'", "yes"), reason
    assert reason.why.startswith("brightness: Jensen-Shannon; 301 examples")
    changed, *_ = record.gate_rows("serving")[-3:]
    assert changed.why.startswith("all 301 recorded requests")
    page = (run_dir / "report.html").read_text()
    assert "against serving requests: brightness: Jensen-Shannon" in page

    one, two, three = LocalModelStore(workspace.serving).versions()
    assert three.digest == one.digest and two.retired
    card = pipeline_card(FoundRun(workspace, record))
    assert card["served"]["note"].startswith("version 1 again: dark images")
