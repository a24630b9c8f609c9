"""Model servers of ``python -m serving.server`` without the import of TensorFlow.

``python -m tests.kit.forked_model_servers SOCKET`` imports it once, then forks a
process per connection, which runs the server's module like a fresh one.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import sys
import threading

# Runs in place of what starts a server. It ends with that, and that with it.
CLIENT = """
import json, os, socket, sys
to = socket.socket(socket.AF_UNIX)
to.connect({path!r})
about = json.dumps([sys.argv[2:], os.getcwd()])
socket.send_fds(to, [about.encode()], [1, 2])
os.close(1), os.close(2)
os._exit(to.recv(1) != b"0")
"""


def main(path: str) -> None:
    """Serves until it is killed."""
    import tensorflow  # noqa: F401

    import serving.server.core
    import serving.server.grpc_service
    import serving.server.models
    import serving.server.process
    import serving.server.servable  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(8)
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _serve(connection)
            connection.close()


def _serve(connection: socket.socket) -> None:
    """Runs a server in this process, and ends it with the client."""
    content, files, _, _ = socket.recv_fds(connection, 1 << 16, 2)
    for number, file in enumerate(files, 1):
        os.dup2(file, number)
        os.close(file)
    arguments, folder = json.loads(content)
    os.chdir(folder)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    threading.Thread(
        target=lambda: connection.recv(1) or os._exit(1), daemon=True
    ).start()
    sys.argv = ["serving.server", *arguments]
    try:
        runpy.run_module("serving.server", run_name="__main__", alter_sys=True)
    finally:
        sys.stdout.flush()
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
