"""Latency and rate of the server beside calls of the same SavedModel in the process.

    .venv/bin/python -m benchmarks.serving NAME IMAGE [--kserve FOLDER]

NAME is a pipeline with a pushed model of one image, IMAGE a file that it takes. Clients
are threads of one process of their own, with a connection each; each row takes
``_SECONDS``. The server without batching is the same with ``--batch-rows 1``. What
recording costs is measured in turns with a server that does not record. The processor's
time of the server says what the machine could do when other work disturbs the rates.
With ``--kserve`` only our server and KServe's are asked, in turns; KServe and the same
TensorFlow are installed into FOLDER, if it is not there.
"""

from __future__ import annotations

import argparse
import base64
import json
import socket
import statistics
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

import psutil
import requests

from pipeline.config.load import load_config
from runners.operations.find_run import published_in
from serving.model_store import store_at
from tests.kit.ports import free_ports

_SECONDS = 5.0
_TURNS = 4
_WARM_UP = 50
# KServe's server with the model, as its documentation shows it: no batches, and no log
# of each request.
_KSERVE = """
import base64, logging, sys
import kserve
import tensorflow as tf

class Digits(kserve.Model):
    def load(self):
        self.model = tf.saved_model.load(sys.argv[2])
        self.signature = self.model.signatures["predict_values"]
        [self.input] = self.signature.structured_input_signature[1]
        self.ready = True

    def predict(self, payload, headers=None):
        images = [base64.b64decode(x["b64"]) for x in payload["instances"]]
        outputs = self.signature(**{self.input: tf.constant(images)})
        labels = [[y.decode() for y in x] for x in outputs["label"].numpy()]
        rows = zip(labels, outputs["probabilities"].numpy().tolist())
        return {"predictions": [{"label": x, "probabilities": y} for x, y in rows]}

logging.disable(logging.INFO)
model = Digits(sys.argv[1])
model.load()
server = kserve.ModelServer(
    http_port=int(sys.argv[3]), enable_grpc=False, enable_latency_logging=False
)
server.start([model])
"""


def _in_process(directory: Path, image: bytes) -> float:
    """Returns the median seconds of a call of the signature."""
    import tensorflow as tf

    model = tf.saved_model.load(str(directory))
    signature = model.signatures["predict_values"]
    [name] = signature.structured_input_signature[1]
    times = []
    for _ in range(1000):
        started = time.perf_counter()
        outputs = signature(**{name: tf.constant([image])})
        _ = [value.numpy() for value in outputs.values()]
        times.append(time.perf_counter() - started)
    return statistics.median(times[_WARM_UP:])


def _rest(name: str, port: int, clients: int, image: bytes) -> tuple[float, float]:
    """Returns the median seconds of a request, and the rate of all clients."""
    value = {"b64": base64.b64encode(image).decode()}
    body = json.dumps({"signature_name": "predict_values", "instances": [value]})
    # No HTTP library: the client must not be what is measured.
    head = f"POST /v1/models/{name}:predict HTTP/1.1\r\nHost: x"
    request = f"{head}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    times: list[float] = []
    end = time.perf_counter() + _SECONDS

    def ask() -> None:
        connection = socket.create_connection(("127.0.0.1", port))
        while (started := time.perf_counter()) < end:
            connection.sendall(request)
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(65536)
            times.append(time.perf_counter() - started)
            # The predictions are objects: the last brace but one closes the last.
            assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"}]}")

    _together(ask, clients)
    return statistics.median(times), len(times) / _SECONDS


def _grpc(name: str, port: int, clients: int, image: bytes) -> tuple[float, float]:
    """As ``_rest``."""
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    request = predict_pb2.PredictRequest()
    request.model_spec.name = name
    request.model_spec.signature_name = "predict_values"
    request.inputs["image"].CopyFrom(tf.make_tensor_proto([image]))
    times: list[float] = []
    end = time.perf_counter() + _SECONDS

    def ask() -> None:
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        while (started := time.perf_counter()) < end:
            stub.Predict(request)
            times.append(time.perf_counter() - started)

    _together(ask, clients)
    return statistics.median(times), len(times) / _SECONDS


def _together(ask, clients: int) -> None:
    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def _server(name: str, *options: str) -> Iterator[tuple[psutil.Process, dict]]:
    """Yields a server and what it says once it is ready."""
    command = [sys.executable, "-m", "runners.cli.main", "serve", name, "--json"]
    ports = ("--port", "0", "--grpc-port", "0")
    server = subprocess.Popen(
        [*command, *ports, *options], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout
    yield psutil.Process(server.pid), json.loads(server.stdout.readline())
    server.terminate()
    server.wait()


@contextmanager
def _kserve(name: str, model: str, folder: Path) -> Iterator[int]:
    """Yields the port of KServe's server."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        needed = "kserve", f"tensorflow-cpu=={version('tensorflow')}"
        subprocess.run([python, "-m", "pip", "install", "-q", *needed], check=True)
    (port,) = free_ports(1)
    server = subprocess.Popen([python, "-c", _KSERVE, name, model, str(port)])
    url = f"http://127.0.0.1:{port}/v1/models/{name}"
    while server.poll() is None:
        with suppress(requests.ConnectionError):
            if requests.get(url).ok:
                break
        time.sleep(0.5)
    yield port
    server.terminate()
    server.wait()


def _in_turns(other: Executor, name: str, ports: list[int], image: bytes) -> None:
    """Prints the rates of two servers with 32 clients each, in turns."""
    found: list[list[tuple[float, float]]] = [[], []]
    for _ in range(_TURNS):
        for answers, port in zip(found, ports, strict=True):
            asked = other.submit(_rest, name, port, 32, image)
            answers.append(asked.result())
    for server, answers in zip(("KServe", "Sluice"), found, strict=True):
        shown = ", ".join(f"{rate:.0f}" for _, rate in answers)
        median = statistics.median(x for x, _ in answers)
        print(f"{server}, 32 clients, REST: {median * 1e3:.2f} ms, {shown} requests/s")
    rates = [statistics.median(rate for _, rate in answers) for answers in found]
    print(f"{rates[1] / rates[0]:.1f} times KServe's rate")


def main() -> None:
    """Prints a row per interface, number of clients and size of a batch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("image", type=Path)
    parser.add_argument("--kserve", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    name, image = arguments.name, arguments.image.read_bytes()
    newest = store_at(published_in(load_config(name))).newest()
    assert newest
    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        if arguments.kserve:
            with (
                _kserve(name, newest.uri, arguments.kserve) as kserve,
                _server(name) as (_, ready),
            ):
                _in_turns(other, name, [kserve, ready["port"]], image)
            return
        alone = other.submit(_in_process, Path(newest.uri), image).result()
        print(f"in the process: {alone * 1e3:.2f} ms")
        for rows in (64, 1):
            with _server(name, "--batch-rows", str(rows)) as (server, ready):
                for measure, port in ((_rest, "port"), (_grpc, "grpc_port")):
                    for clients in (1, 8, 32):
                        times = server.cpu_times()
                        asked = other.submit(measure, name, ready[port], clients, image)
                        median, rate = asked.result()
                        after = server.cpu_times()
                        used = after.user + after.system - times.user - times.system
                        cpu_ms = used * 1e3 / (rate * _SECONDS)
                        kind = f"{measure.__name__:6} {clients:2} clients"
                        shown = f"{median * 1e3:6.2f} ms {rate:6.0f}/s"
                        cpu = f"{cpu_ms:5.2f} ms of CPU"
                        print(f"batches of {rows:2} {kind}: {shown} {cpu}")
        with (
            _server(name) as (_, plain),
            _server(name, "--record", "0.1") as (_, recording),
        ):
            rates: list[list[float]] = [[], []]
            for _ in range(_TURNS):
                for found, ready in zip(rates, (plain, recording), strict=True):
                    asked = other.submit(_rest, name, ready["port"], 32, image)
                    found.append(asked.result()[1])
            without, recorded = map(statistics.median, rates)
            cost = 1 - recorded / without
            print(
                f"10 % recorded, 32 clients: {recorded:.0f}/s, {cost:+.1%} of the rate"
            )


if __name__ == "__main__":
    main()
