#!/usr/bin/env python3
"""Draws a program's terminal output as an SVG that is readable in light and in dark.

    docs/demo/picture.py target/release/piton demo > docs/demo/demo.svg

The program runs in a terminal of its own, so the picture shows what it really prints. Only Python's standard library
is used. Text keeps to its grid whatever fixed-width font the reader has.
"""

import os
import pty
import re
import struct
import sys
import termios
from fcntl import ioctl
from html import escape

COLUMNS, ROWS = 92, 80
CELL, LINE, MARGIN = 8.4, 18, 16
# The colours of the terminal's palette that piton uses, for light and for dark.
COLOURS = {
    31: ("red", "#b3261e", "#ff8a80"),
    32: ("green", "#1a7f37", "#6fdd8b"),
    33: ("yellow", "#8a6100", "#e3b341"),
    34: ("blue", "#0550ae", "#79c0ff"),
    35: ("magenta", "#8250df", "#d2a8ff"),
    36: ("cyan", "#0b6e80", "#56d4dd"),
}
SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


def output_of(command):
    """What a command prints to a terminal, and its exit code."""
    child, terminal = pty.fork()
    if child == 0:
        for name in ("NO_COLOR", "COLUMNS", "PITON_PAGER"):
            os.environ.pop(name, None)
        os.environ.update(TERM="xterm-256color", PAGER="cat")
        os.execvp(command[0], command)
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    printed = bytearray()
    try:
        while part := os.read(terminal, 65536):
            printed += part
    except OSError:
        pass  # The terminal is gone when the program has ended.
    return printed.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def pieces_of(line):
    """The line's pieces as (column, text, classes). A wide gap ends a piece, so that columns stay where they are."""
    column, classes, pieces = 0, set(), []

    def add(text):
        nonlocal column
        for part in re.split(r"( {2,})", text):
            if part.strip():
                pieces.append((column, part, " ".join(sorted(classes))))
            column += len(part)

    at = 0
    for found in SEQUENCE.finditer(line):
        add(line[at : found.start()])
        at = found.end()
        if found[2] != "m":
            continue
        for code in map(int, (found[1] or "0").split(";")):
            if code == 0:
                classes.clear()
            elif code in (1, 2):
                classes.add("bold" if code == 1 else "dim")
            elif code in COLOURS:
                classes.difference_update(name for name, _, _ in COLOURS.values())
                classes.add(COLOURS[code][0])
            else:
                sys.exit(f"error: a picture has no look for the terminal code {code}")
    add(line[at:])
    return pieces


def style():
    def palette(which, paper, ink, edge, faint):
        looks = [f".paper{{fill:{paper};stroke:{edge}}}", f"text{{fill:{ink}}}", f".dim{{fill:{faint}}}"]
        looks += [f".{colour[0]}{{fill:{colour[which]}}}" for colour in COLOURS.values()]
        return "".join(looks)

    light = palette(1, "#ffffff", "#1f2328", "#d1d9e0", "#59636e")
    dark = palette(2, "#0d1117", "#e6edf3", "#3d444d", "#9198a1")
    font = "ui-monospace,'SFMono-Regular',Menlo,Consolas,'DejaVu Sans Mono',monospace"
    common = f"text{{font:14px {font};white-space:pre}}.bold{{font-weight:700}}"
    return f"{common}{light}@media (prefers-color-scheme:dark){{{dark}}}"


def picture(text, title):
    lines = [pieces_of(line) for line in text.replace("\r", "").rstrip().split("\n")]
    widest = max(column + len(text) for pieces in lines for column, text, _ in pieces)
    if widest > COLUMNS:
        sys.exit(f"error: a line has {widest} columns, and the picture {COLUMNS}")
    width, height = COLUMNS * CELL + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'role="img" aria-label="{escape(title)}">',
        f"<style>{style()}</style>",
        f'<rect class="paper" x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>',
    ]
    for row, pieces in enumerate(lines):
        for column, text, classes in pieces:
            look = f' class="{classes}"' if classes else ""
            x, y = MARGIN + column * CELL, MARGIN + row * LINE + 13
            out.append(f'<text x="{x:g}" y="{y}" textLength="{len(text) * CELL:g}" xml:space="preserve"{look}>{escape(text)}</text>')
    return "\n".join([*out, "</svg>", ""])


def main():
    command = sys.argv[1:]
    if not command:
        sys.exit(__doc__)
    text, code = output_of(command)
    if code != 0:
        sys.exit(f"error: {command[0]} ended in {code}\n{text}")
    title = " ".join([os.path.basename(command[0]), *command[1:]])
    sys.stdout.write(picture(text, f"What `{title}` prints"))


main()
