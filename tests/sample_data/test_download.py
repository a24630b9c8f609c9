"""Downloads from a server that breaks off, lies, or is not there."""

import hashlib
import http.server
import io
import socket
import tarfile
import threading
from dataclasses import replace

import pytest

from sample_data import catalog
from sample_data.data_set import Content, DataSet, RemoteFile, Split
from sample_data.download import download, unpack
from sluice.errors import DataError, UsageError

pytestmark = pytest.mark.unit

CONTENT = bytes(range(256)) * 2000


class Server(http.server.ThreadingHTTPServer):
    """Serves CONTENT at every path.

    Attributes:
      break_after: bytes after which a connection is closed; None for never.
      ranges: whether it knows the header Range.
      asked: the header Range of every request.
    """

    break_after: int | None = None
    ranges = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []
        self.content = CONTENT

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/values.bin"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        asked = self.headers["Range"]
        self.server.asked.append(asked)
        content, start = self.server.content, 0
        if asked and self.server.ranges:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        end = self.server.break_after
        self.wfile.write(content[start:][:end])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def data_set(url):
    file = RemoteFile(url, len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
    return DataSet(
        name="values",
        version=1,
        description="values",
        licence="none",
        gzip=False,
        splits=(Split("train", 1, 1),),
        read=lambda source: Content(
            {"all": [(source.path / "values.bin").read_bytes()[:9]]}
        ),
        expected_files="values.bin",
        downloads=(file,),
    )


def test_a_download_is_whole_and_told(server, tmp_path):
    lines: list[str] = []
    folder = download(data_set(server.url), tmp_path, lines.append)
    assert (folder / "values.bin").read_bytes() == CONTENT
    assert lines[-1] == "values.bin: 512,000 of 512,000 bytes"
    assert 5 <= len(lines) <= 10
    download(data_set(server.url), tmp_path)
    assert server.asked == [None]


@pytest.mark.parametrize(
    ("left", "ranges", "break_after", "asked"),
    [
        (CONTENT[:1000], True, None, ["bytes=1000-"]),  # of a killed download
        (b"x" * 1000, False, None, ["bytes=1000-"]),  # the server begins again
        (b"", True, 200_000, [None]),
    ],
)
def test_an_interrupted_download_is_resumed(
    server, tmp_path, left, ranges, break_after, asked
):
    server.ranges, server.break_after = ranges, break_after
    part = tmp_path / "values" / "values.bin.part"
    part.parent.mkdir()
    if left:
        part.write_bytes(left)
    folder = download(data_set(server.url), tmp_path)
    assert (folder / "values.bin").read_bytes() == CONTENT
    assert server.asked[: len(asked)] == asked
    assert (len(server.asked) > 2) == bool(break_after)
    assert not part.exists()


@pytest.mark.parametrize("content", [CONTENT[:-1] + b"x", CONTENT + b"x"])
def test_other_content_is_refused_and_removed(server, tmp_path, content):
    server.content = content
    with pytest.raises(DataError, match="another size or digest") as caught:
        download(data_set(server.url), tmp_path)
    assert caught.value.where == server.url
    assert "--from DIR" in str(caught.value.hint)
    assert [path.name for path in (tmp_path / "values").iterdir()] == [".lock"]


def test_without_a_network_the_way_out_is_named(tmp_path, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/values.bin"
    values = data_set(url)
    monkeypatch.setitem(catalog._DATA_SETS, "values", values)
    with pytest.raises(UsageError, match="cannot be downloaded") as caught:
        catalog.make("values", tmp_path / "made")

    assert caught.value.where == url
    assert caught.value.expected == "a network, or the files: values.bin"
    assert "sluice data make values --from DIR" in str(caught.value.hint)
    assert not (tmp_path / "made").exists()


def test_what_is_downloaded_is_converted(server, tmp_path, monkeypatch):
    monkeypatch.setitem(catalog._DATA_SETS, "values", data_set(server.url))
    made = catalog.make("values", tmp_path / "made")
    assert made.records("train") == 1
    assert catalog.make("values", tmp_path / "made") == made
    assert len(server.asked) == 1
    with pytest.raises(UsageError, match="made from your own files") as caught:
        catalog.make("csv", tmp_path / "csv")
    assert "--from DIR" in str(caught.value.hint)


def archive(path, names):
    with tarfile.open(path, "w:gz") as members:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 3
            members.addfile(member, io.BytesIO(b"abc"))
        link = tarfile.TarInfo("photos/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        members.addfile(link)
    return path


@pytest.mark.parametrize("name", ["/etc/x", "photos/../../x", "../x", "other/x"])
def test_a_name_that_leads_out_is_refused(tmp_path, name):
    path = archive(tmp_path / "photos.tgz", ["photos/a/1.jpg", name])
    with pytest.raises(DataError, match="truncated or corrupt") as caught:
        unpack(path, tmp_path, "photos")
    assert name in str(caught.value.actual)
    assert not (tmp_path / "photos").exists()


def test_an_archive_is_unpacked_without_its_links(server, tmp_path):
    names = ["photos/a/1.jpg", "photos/b/2.jpg"]
    server.content = archive(tmp_path / "photos.tgz", names).read_bytes()
    file = RemoteFile(
        server.url.replace("values.bin", "photos.tgz"),
        len(server.content),
        hashlib.sha256(server.content).hexdigest(),
        unpacked="photos",
    )
    folder = download(replace(data_set(""), downloads=(file,)), tmp_path)
    found = {path for path in (folder / "photos").rglob("*") if not path.is_dir()}
    assert found == {folder / name for name in names}
    assert (folder / "photos" / "a" / "1.jpg").read_bytes() == b"abc"
