"""Draws the README's two pictures from real runs: the live terminal and the page.

``python -m benchmarks.readme_pictures`` runs digits on a terminal of its own, then a
second time with one epoch, which the model gate stops. It writes both pictures to
``docs/images``. The page needs Chromium.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from PIL import Image
from rich.ansi import AnsiDecoder
from rich.console import Console

from sluice.errors import ExitCode

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SLUICE = Path(sys.executable).with_name("sluice")
COMMAND = "sluice run digits"
COLUMNS, LINES = 96, 40
# Where rich goes back to the first line of the table that it draws anew.
_REDRAW = re.compile(r"\r(?:\x1b\[2K|\x1b\[1A)+")
_SHOWN = re.compile(r"epoch 1\d/30")
# The page's own width and the part that a README shows.
PAGE_SIZE = (1000, 900)


def run_on_terminal(*arguments: str) -> str:
    """Returns all that ``sluice`` wrote to a terminal, control characters included."""
    terminal, its_side = pty.openpty()
    size = struct.pack("HHHH", LINES, COLUMNS, 0, 0)
    fcntl.ioctl(its_side, termios.TIOCSWINSZ, size)
    command = subprocess.Popen([SLUICE, *arguments], stdout=its_side, stderr=its_side)
    os.close(its_side)
    written = bytearray()
    with contextlib.suppress(OSError):  # Linux's end of a terminal without a writer.
        while chunk := os.read(terminal, 65536):
            written += chunk
    if command.wait() != 0:
        sys.exit(written.decode())
    return written.decode()


def draw_terminal(written: str) -> str:
    """Returns the screen during the training, as SVG without fonts from elsewhere."""
    above, *frames = _REDRAW.split(written)
    frame = next(frame for frame in frames if _SHOWN.search(frame))
    header = above.splitlines()[0]
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True
    )
    for text in (f"$ {COMMAND}", header, frame.rstrip()):
        console.print(*AnsiDecoder().decode(text), sep="\n")
    svg = console.export_svg(title=COMMAND)
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def draw_page(report: Path, picture: Path) -> None:
    """Draws the top of a page as PNG in 64 colours."""
    width, height = PAGE_SIZE
    subprocess.run(
        [
            *("chromium", "--headless", "--no-sandbox", "--hide-scrollbars"),
            *(f"--window-size={width},{height}", f"--screenshot={picture}"),
            report.as_uri(),
        ],
        check=True,
        capture_output=True,
    )
    with Image.open(picture) as drawn:
        drawn.convert("RGB").quantize(64).save(picture, optimize=True)


def main() -> None:
    """Runs digits twice and draws the pictures."""
    with tempfile.TemporaryDirectory() as workspace:
        os.environ.update(SLUICE_WORKSPACE=workspace, TERM="xterm-256color")
        subprocess.run([SLUICE, "data", "make", "digits"], check=True)
        written = run_on_terminal("run", "digits")
        (IMAGES / "terminal.svg").write_text(draw_terminal(written))
        rejected = subprocess.run([SLUICE, "run", "digits", "--set", "train.epochs=1"])
        if rejected.returncode != ExitCode.MODEL:
            sys.exit("the model gate did not stop the run of one epoch")
        report = max(Path(workspace, "digits", "runs").glob("*/report.html"))
        draw_page(report, IMAGES / "page.png")


if __name__ == "__main__":
    main()
