"""Runs the tests of this folder where Google's servers are a fake on this machine.

TensorFlow's client has no setting for another server. So the tests run in a process
of their own, in namespaces where ``/etc/hosts`` leads to the fake and no network leads
out; here, their outcomes are taken over. The fake's certificate is made for the tests,
and ``CURL_CA_BUNDLE`` has the client trust it. It finds no credentials, and asks
without.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

_FOLDER = Path(__file__).parent
_INSIDE = "SLUICE_FAKE_GCS"
_HOSTS = ("storage.googleapis.com", "www.googleapis.com")
_DEADLINE_S = 300
_SCRIPT = """
set -e
ip link set lo up
mount --bind "$SLUICE_FAKE_GCS/hosts" /etc/hosts
exec "$@"
"""


@dataclass(frozen=True)
class Outcomes:
    """How the tests have ended in the other process.

    Attributes:
      of: by test how: passed, failed or skipped, and why.
      log: what pytest has printed there.
    """

    of: dict[str, tuple[str, str]]
    log: str


@pytest.fixture(scope="module", autouse=True)
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Outcomes | None:
    """The outcomes of a module's tests; None in the process that makes them."""
    if _INSIDE in os.environ:
        return None
    options = next(filter(_may_set_up, ("-mn", "-Urmn")), None)
    if options is None:
        pytest.skip("no namespaces with a network and mounts of their own here")
    folder = tmp_path_factory.mktemp("fake_gcs")
    _write_hosts(folder)
    _write_certificates(folder)
    tests = [item.nodeid for item in request.session.items if item.path == request.path]
    shell = ["unshare", options, "bash", "-c", _SCRIPT, "-"]
    # What is expected to fail is judged here.
    options_inside = ["-p", "no:cacheprovider", "--runxfail"]
    done = subprocess.run(
        [*shell, sys.executable, "-m", "pytest", *options_inside, *tests],
        cwd=request.config.rootpath,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_DEADLINE_S,
    )
    path = folder / "outcomes"
    lines = path.read_text().splitlines() if path.exists() else []
    return Outcomes(
        {test: (how, why) for test, how, why in map(json.loads, lines)}, done.stdout
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Takes over the outcome of a test from the process that it has run in."""
    if _INSIDE in os.environ:
        return None
    found = pyfuncitem.funcargs["outcomes"]
    assert isinstance(found, Outcomes)
    how, why = found.of.get(pyfuncitem.nodeid, ("failed", found.log))
    if how == "skipped":
        pytest.skip(why)
    if how != "passed":
        pytest.fail(why, pytrace=False)
    return True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Writes an outcome down for the process that waits for it."""
    if _INSIDE in os.environ and (report.when == "call" or not report.passed):
        text = report.longreprtext + "".join(
            f"\n--- {name}\n{content}" for name, content in report.sections
        )
        with (Path(os.environ[_INSIDE]) / "outcomes").open("a") as file:
            print(json.dumps([report.nodeid, report.outcome, text]), file=file)


class _Manager(BaseManager):
    pass


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """The fake, which runs in a process of its own; ``FakeGcs`` has its methods."""
    if _INSIDE not in os.environ:
        yield None
        return
    from fake_gcs import FakeGcs

    _Manager.register("FakeGcs", FakeGcs)
    manager = _Manager()
    # Should this process be killed, the other does not live for ever.
    manager.start(signal.alarm, [_DEADLINE_S])
    with manager:
        yield manager.FakeGcs(os.path.join(os.environ[_INSIDE], "server.pem"))  # type: ignore[attr-defined]


class Bucket:
    """A bucket of the fake, for one test.

    Attributes:
      name: its name.
      server: the fake, to look at and to make fail.
    """

    def __init__(self, server: Any, name: str) -> None:
        self.name = name
        self.server = server
        server.make_bucket(name)

    def uri(self, name: str = "") -> str:
        """Returns an object's address."""
        return f"gs://{self.name}/{name}"

    def put(self, name: str, content: bytes = b"", age_s: float = 0) -> str:
        """Puts an object and returns its address."""
        self.server.put(self.name, name, content, age_s)
        return self.uri(name)

    def get(self, name: str) -> bytes:
        return self.server.get(self.name, name)

    def remove(self, name: str) -> None:
        self.server.remove(self.name, name)

    def names(self, prefix: str = "") -> list[str]:
        return self.server.names(self.name, prefix)

    def fail(self, method: str, path: str, status: int, times: int = 1) -> None:
        """Lets the next requests fail whose path has this in it."""
        self.server.fail(method, rf"{self.name}.*{path}", status, times)

    def requests(self) -> list[str]:
        """Returns the requests since the last call, of all buckets."""
        return self.server.requests()


@pytest.fixture
def bucket(server: Any) -> Iterator[Bucket | None]:
    """A bucket of its own."""
    if server is None:
        yield None
        return
    yield Bucket(server, f"bucket-{uuid4().hex[:8]}")
    server.heal()
    server.requests()


def _may_set_up(options: str) -> bool:
    command = ["unshare", options, "bash", "-c", _SCRIPT, "-", "true"]
    environment = {**os.environ, _INSIDE: "/etc"}
    try:
        return (
            subprocess.run(command, env=environment, capture_output=True).returncode
            == 0
        )
    except FileNotFoundError:
        return False


def _environment(folder: Path) -> dict[str, str]:
    """Returns the environment of the tests: nothing that leads the client elsewhere."""
    ours = {
        _INSIDE: str(folder),
        "PYTHONPATH": str(_FOLDER),
        "CURL_CA_BUNDLE": str(folder / "ca.pem"),
        "NO_GCE_CHECK": "true",
        "CLOUDSDK_CONFIG": str(folder),
        "GCS_RETRY_CONFIG_INIT_DELAY_TIME_US": "1000",
        "GCS_RETRY_CONFIG_MAX_DELAY_TIME_US": "1000",
        "GCS_RETRY_CONFIG_MAX_RETRIES": "2",
        # Reads of one file are several requests then, and cost 64 MB of memory less.
        "GCS_READ_CACHE_BLOCK_SIZE_MB": "1",
        # Otherwise the client knows for five seconds what has been removed.
        "GCS_STAT_CACHE_MAX_AGE": "0",
    }
    others = ("PYTEST_", "GCS_", "GOOGLE_", "CLOUDSDK_")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(others) and not name.lower().endswith("_proxy")
    }
    return kept | ours


def _write_hosts(folder: Path) -> None:
    names = ("localhost", *_HOSTS)
    (folder / "hosts").write_text("".join(f"127.0.0.1 {name}\n" for name in names))


def _write_certificates(folder: Path) -> None:
    """Writes ``ca.pem``, and ``server.pem`` with a key, both good for a day."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    def certificate(
        name: str, key: Any, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(timezone.utc)
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fake")]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=False)
            .sign(ca_key, hashes.SHA256())
        )

    ca_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca = certificate("fake", ca_key, x509.BasicConstraints(True, None))
    names = x509.SubjectAlternativeName([x509.DNSName(name) for name in _HOSTS])
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(ca.public_bytes(pem))
    (folder / "server.pem").write_bytes(
        certificate("server", server_key, names).public_bytes(pem)
        + server_key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
