"""A mask drawn as SVG: one self-contained picture for pages, notebooks and files."""

from __future__ import annotations

from itertools import groupby
from typing import Any
from xml.sax.saxutils import escape
from zlib import crc32

from headwise.masks.base import Mask, Tile
from headwise.masks.picture import Picture, picture

STEP = 20  # pixels from one cell to the next
LETTER = 7.4  # width of a letter of a label, bold ones too
LONGEST_LABEL = 16
LINE = 18  # height of a line of text

STYLE = """
.{id}{{--ink:#1f2328;--paper:#ffffff;--quiet:#656d76;--rule:#d0d7de;--cell:#1f5fbf}}
@media (prefers-color-scheme:dark){{
.{id}{{--ink:#e6edf3;--paper:#0d1117;--quiet:#9198a1;--rule:#3d444d;--cell:#79b8ff}}}}
.{id} text{{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--ink)}}
.{id} .quiet{{fill:var(--quiet)}}.{id} .paper{{fill:var(--paper)}}
.{id} .grid{{stroke:var(--rule);fill:none}}.{id} .all{{fill:var(--cell)}}
.{id} .hatch{{stroke:var(--cell);stroke-width:2.5}}.{id} .dot{{fill:var(--quiet)}}
"""


def draw_svg(mask: Mask, q_len: int | None = None, k_len: int | None = None, **options: Any) -> str:
    """The mask as an SVG text: queries down, keys across.

    A cell that may attend is filled, one of which some pairs may (pooled cells and partial tiles) is
    hatched, one that may not is a dot, so that shape alone tells them apart. Colours follow
    `prefers-color-scheme`; `title` and `desc` tell screen readers what is seen. Nothing is loaded.

    Args and errors: as for `headwise.masks.picture.picture`.
    """
    shown = picture(mask, q_len, k_len, **options)
    q_labels = [_short(text) for text in shown.q_labels]
    k_labels = [_short(text) for text in shown.k_labels]
    legend = [(cell, shown.words[cell]) for cell in shown.used()]
    title, notes = _wrap(shown.title, 72), _wrap(shown.note, 72) if shown.note else []

    left = 38 + round(LETTER * max((len(text) for text in q_labels), default=0))
    across = max((len(text) for text in k_labels), default=0)
    top = 12 + LINE * (len(title) + 1) + round(LETTER * across) + 8
    wide, high = STEP * len(k_labels), STEP * len(q_labels)
    texts: list[float] = [len(line) * LETTER + 24 for line in (*title, *notes)]
    texts += [sum(30 + LETTER * (len(word) + 1) for _, word in legend) + 24]
    width = round(max(left + wide + 12, *texts))
    height = top + high + 12 + LINE * (1 + len(notes)) + 8
    name = f"hw{crc32(repr((shown, q_labels)).encode()):08x}"

    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" role="img" '
        f'aria-labelledby="{name}-t {name}-d" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">',
        f'<title id="{name}-t">{escape(_legal(shown.title))}</title>',
        f'<desc id="{name}-d">{escape(_legal(_description(shown)))}</desc>',
        f"<style>{STYLE.format(id=name)}</style>",
        f'<defs><pattern id="{name}-h" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><path class="hatch" d="M1.5 0V6"/></pattern></defs>',
        f'<rect class="paper" width="{width}" height="{height}"/>',
    ]
    body += [_text(12, 12 + LINE * (i + 0.6), line, weight="bold") for i, line in enumerate(title)]
    body.append(_text(left, 12 + LINE * (len(title) + 0.6), "keys →", kind="quiet"))
    middle = top + high / 2
    body.append(_text(12, middle, "queries →", kind="quiet", anchor="middle", turn=(90, 12, middle)))
    for j, label in enumerate(k_labels):
        x = left + STEP * j + STEP / 2 + 4
        body.append(_text(x, top - 6, label, turn=(-90, x, top - 6)))
    for i, label in enumerate(q_labels):
        body.append(_text(left - 6, top + STEP * i + STEP / 2 + 4, label, anchor="end"))
    for i, row in enumerate(shown.cells):
        body += _runs(row, left, top + STEP * i, name)
    body.append(f'<path class="grid" d="{_grid(left, top, len(k_labels), len(q_labels))}"/>')
    x, y = 12.0, top + high + 12
    for cell, word in legend:
        body += _runs((cell,), x, y, name)
        body.append(f'<path class="grid" d="{_grid(x, y, 1, 1)}"/>')
        body.append(_text(x + STEP + 6, y + STEP / 2 + 4, word))
        x += 30 + LETTER * (len(word) + 1)
    y += STEP + 4
    body += [_text(12, y + LINE * (i + 0.6), line, kind="quiet") for i, line in enumerate(notes)]
    return "\n".join([*body, "</svg>"]) + "\n"


def _runs(row: tuple[Tile, ...], x: float, y: float, name: str) -> list[str]:
    """One row of cells, neighbours of a kind as one shape."""
    shapes = []
    for cell, run in groupby(row):
        count = len(list(run))
        if cell == Tile.EMPTY:
            dots = "".join(
                f"M{x + STEP * (i + 0.5) - 1:g} {y + STEP / 2 - 1:g}h2v2h-2z" for i in range(count)
            )
            shapes.append(f'<path class="dot" d="{dots}"/>')
        else:
            fill = 'class="all"' if cell == Tile.FULL else f'fill="url(#{name}-h)"'
            shapes.append(f'<rect {fill} x="{x:g}" y="{y:g}" width="{STEP * count}" height="{STEP}"/>')
        x += STEP * count
    return shapes


def _grid(x: float, y: float, cols: int, rows: int) -> str:
    down = "".join(f"M{x + STEP * j:g} {y:g}v{STEP * rows}" for j in range(cols + 1))
    return down + "".join(f"M{x:g} {y + STEP * i:g}h{STEP * cols}" for i in range(rows + 1))


def _text(x: float, y: float, text: str, *, kind: str = "", anchor: str = "", weight: str = "",
          turn: tuple[float, float, float] | None = None) -> str:  # fmt: skip
    attributes = f'x="{x:g}" y="{y:g}"'
    attributes += f' class="{kind}"' if kind else ""
    attributes += f' text-anchor="{anchor}"' if anchor else ""
    attributes += f' font-weight="{weight}"' if weight else ""
    attributes += f' transform="rotate({turn[0]:g} {turn[1]:g} {turn[2]:g})"' if turn else ""
    return f"<text {attributes}>{escape(_legal(text))}</text>"


def _description(shown: Picture) -> str:
    """What the picture shows, row by row, for those who don't see it."""
    rows = []
    for label, row in zip(shown.q_labels, shown.cells, strict=True):
        seen, part = (_spans(shown.k_labels, row, cell) for cell in (Tile.FULL, Tile.PARTIAL))
        said = ([seen] if seen else []) + ([f"partly {part}"] if part else [])
        rows.append(f"{label}: {' and '.join(said) or 'nothing'}")
    note = f" ({shown.note})" if shown.note else ""
    return f"Rows are queries, columns are keys{note}. Who attends to whom: {'; '.join(rows) or 'nobody'}."


def _spans(labels: tuple[str, ...], row: tuple[Tile, ...], wanted: Tile) -> str:
    """The labels of the wanted cells; three or more in a row as "first to last"."""
    said: list[str] = []
    for cell, run in groupby(range(len(row)), key=lambda j: row[j]):
        if cell == wanted:
            places = [labels[j] for j in run]
            said += places if len(places) < 3 else [f"{places[0]} to {places[-1]}"]
    return ", ".join(said)


def _short(text: str) -> str:
    text = _legal(text)
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def _legal(text: str) -> str:
    """Control characters, which XML can't hold, as their escapes."""
    return "".join(char if char.isprintable() or char == " " else repr(char)[1:-1] for char in text)


def _wrap(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] += f" {word}" if lines[-1] else word
    return lines
