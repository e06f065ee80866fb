"""A run's heads on one input, in the terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text
from torch import Tensor

from headwise.cli.classify import SINGLE, rules_over
from headwise.cli.errors import printable
from headwise.cli.runs.blocks import TALL, beside, enlarged, resized, scaled, shaded
from headwise.cli.runs.view import (
    MANY,
    Answered,
    Classified,
    Facts,
    Heard,
    Part,
    View,
    Written,
)
from headwise.cli.table import UNCUT, Row, plain_table, rows_table
from headwise.cli.wording import shown, width

LEFT = 9  # columns before a picture of a sound
MOST = 3  # keys of a query in a table
CLASSES = 3


def print_view(console: Console, view: View, *, layer: int | None, head: int | None) -> None:
    """The result, a picture or an alignment, and a table of the heads of each part."""
    room = console.width if console.is_terminal or "COLUMNS" in os.environ else None
    unicode = "utf" in (console.encoding or "").lower()
    arrow = "→" if unicode else "->"

    def say(line: str, style: str = "") -> None:
        console.print(escape(line), style=style, highlight=False, soft_wrap=room is None)

    say(headline(view), "bold")
    for note in view.notes:
        say(printable(note), "yellow")
    for line in result_lines(view):
        say(line)
    chosen = matrix_of(view, layer, head)
    for line in picture_lines(view, *chosen, room=room or 80, unicode=unicode):
        console.print(Text(line), soft_wrap=True)
    if not isinstance(view.result, Heard | Classified):
        part, matrix, title = chosen
        if part.key == "cross" or None not in (layer, head):
            console.print()
            say(f"{title}: {part.about}.")
            console.print(keys_table(part, matrix, arrow=arrow, room=room), width=None if room else UNCUT)
    for part in view.parts:
        facts = chosen_facts(part, layer, head)
        if not facts:
            continue
        console.print()
        say(f"{part.title}: {part.about}.", "bold")
        table = rows_table([_row(part, one) for one in facts], arrow=arrow, room=room)
        console.print(table, width=None if room else UNCUT)
        say(spread_words(part, facts), "dim")
    say("")
    say(
        f"{rules_over(view.parts[0].keys.unit)} Single keys: one at a time, the largest weight {SINGLE:.0%} "
        "or more on average. Layers and heads count from 0. Self-check: the weights of a query add up to 1, "
        f"to within {view.row_sum_error:.0e}.",
        "dim",
    )


def headline(view: View) -> str:
    sizes = ", ".join(
        f"{part.title[0].lower()}{part.title[1:]} {part.layers} layers x {part.heads} heads"
        for part in view.parts
        if part.heads
    )
    return f"{printable(view.run)} ({view.application}): {sizes}"


def result_lines(view: View) -> list[str]:
    """What went in and what came out."""
    found = view.result
    if isinstance(found, Written):
        end = "" if found.finished else "  (cut off at the length limit)"
        lines = [f"input   {printable(found.source)}", f"output  {printable(found.output)}{end}"]
        if found.copied:
            lines.append(f"copied  {copied_words(view, found)}")
        return lines
    if isinstance(found, Answered):
        [(first, begins), *_] = found.starts
        [(last, ends), *_] = found.ends
        labels = view.parts[0].queries.labels
        return [
            f"question  {printable(found.question)}",
            f"text      {printable(marked(found))}",
            f"answer    {printable(found.output)}",
            f"likeliest first token: {printable(labels[first])} {begins:.1%}; "
            f"last token: {printable(labels[last])} {ends:.1%}",
        ]
    if isinstance(found, Classified):
        shares = list(found.probabilities.items())[:CLASSES]
        said = ", ".join(f"{name} {share:.1%}" for name, share in shares)
        return [f"input   {printable(view.origin)}", f"output  {printable(said)}"]
    lines = [
        f"input   {printable(view.origin)}, {found.seconds:.2f} seconds",
        f"output  {printable(found.output) or '(nothing heard)'}",
    ]
    if found.written is not None:
        lines.append(f"decoder {printable(found.written) or '(nothing written)'}")
    return lines


def copied_words(view: View, found: Written) -> str:
    """The share of copying in each token that is written."""
    copying = view.part("copy")
    if copying is None:
        return ""
    pairs = zip(copying.queries.labels, found.copied, strict=True)
    return "  ".join(f"{printable(label)} {share:.0%}" for label, share in pairs)


def marked(found: Answered) -> str:
    """The text with its answer in brackets."""
    left, right = found.span
    text = f"{found.text[:left]}[[{found.output}]]{found.text[right:]}"
    return " ".join(text.split())


def matrix_of(view: View, layer: int | None, head: int | None) -> tuple[Part, Tensor, str]:
    """The part, the map and its name that are shown at length: those that were asked for, else what says
    most."""
    part, at = view.opening(layer)
    if head is None:
        why = ", the sharpest" if layer is None and part.key == "cross" else ""
        title = f"{part.title}, mean over the heads of layer {at}{why}"
        return part, part.mean(at), title
    return part, part.maps[at, head], f"{part.title}, layer {at}, head {head}"


def chosen_facts(part: Part, layer: int | None, head: int | None) -> list[Facts]:
    return [
        one for row in part.facts for one in row if layer in (None, one.layer) and head in (None, one.head)
    ]


def keys_table(part: Part, matrix: Tensor, *, arrow: str, room: int | None) -> Table:
    """The strongest keys of every query."""
    queries, keys = part.queries.cell_labels, part.keys.cell_labels
    cell = max(map(width, (*queries, *keys)))
    most = MOST
    if room is not None:
        most = max(1, min(most, (room - 12) // 14))
        cell = min(cell, max((room - 6 - most * 8) // (most + 1), 4))
    table = plain_table()
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("query" if part.key != "cross" else "writes", no_wrap=True, width=max(cell, 6))
    table.add_column(f"{arrow} looks at", no_wrap=True, overflow="ellipsis")
    for at, query in enumerate(queries):
        weights, places = matrix[at].topk(min(most, len(keys)))
        said = "  ".join(
            f"{shown(keys[key], cell)} {weight:.3f}"
            for key, weight in zip(places.tolist(), weights.tolist(), strict=True)
            if weight >= 0.0005
        )
        table.add_row(str(at), Text(shown(query, cell)), Text(said))
    return table


def picture_lines(
    view: View, part: Part, matrix: Tensor, title: str, *, room: int, unicode: bool
) -> list[str]:
    """An image with what its class token attends to, or a sound with its symbols; nothing for texts."""
    if isinstance(view.result, Classified):
        return _image_lines(view, view.result, part, matrix, title, room=room, unicode=unicode)
    if isinstance(view.result, Heard):
        return _sound_lines(view.result, part, matrix, title, room=room, unicode=unicode)
    return []


def _image_lines(
    view: View, result: Classified, part: Part, matrix: Tensor, title: str, *, room: int, unicode: bool
) -> list[str]:
    rows, columns = part.queries.grid
    height = result.pixels.shape[1]
    times = height // rows if height <= TALL else max(1, TALL // max(rows, columns))
    image = resized(result.pixels.float().mean(0), rows * times, columns * times) / 255
    pictures = [("the image", shaded(image, unicode=unicode))]
    if part.queries.whole:
        maps = [(title.split(", ", 1)[1].replace("mean over the heads of ", ""), matrix)]
        rollout = view.part("rollout")
        if rollout is not None:
            maps.append(("rollout", rollout.mean(rollout.layers - 1)))
        for name, one in maps:
            given = one[0, 1:].reshape(rows, columns)
            picture = shaded(enlarged(given / given.max().clamp(min=1e-9), times), unicode=unicode)
            pictures.append((f"{name} (to {float(given.max()):.2f})", picture))
    return [
        "",
        "The image, and the patches that the class token looks at, each up to its largest weight:",
        *beside(pictures, room),
    ]


def _sound_lines(
    result: Heard, part: Part, matrix: Tensor, title: str, *, room: int, unicode: bool
) -> list[str]:
    """Log-mel, CTC's symbols, and a line for each query of the map; one column or more for each frame."""
    frames = part.keys.cells
    wide = max(1, min(4, (room - LEFT) // frames))
    columns = min(frames * wide, max(room - LEFT, 8))
    mel = scaled(resized(result.features.t().flip(0), min(8, result.features.shape[1]), columns))
    lines = ["", "log-mel, high above low:".ljust(LEFT)]
    lines += [" " * LEFT + line for line in shaded(mel, unicode=unicode, wide=1)]
    heard = [" "] * columns
    for frame, symbol, _ in result.symbols:
        at = min(frame * columns // len(part.keys.labels), columns - 1)
        heard[at] = printable(symbol)[:1]
    lines.append("CTC".ljust(LEFT) + "".join(heard).rstrip())
    if part.key == "cross":
        cells = resized(matrix, matrix.shape[0], columns)
        cells = cells / cells.amax(1, keepdim=True).clamp(min=1e-9)
        lines += [
            f"{shown(query, LEFT - 1):<{LEFT}}{line}".rstrip()
            for query, line in zip(
                part.queries.cell_labels, shaded(cells, unicode=unicode, wide=1), strict=True
            )
        ]
    end = f"{result.seconds:.2f} s"
    lines.append(" " * LEFT + "0" + end.rjust(columns - 1))
    if part.key == "cross":
        lines.append(f"{title}: {part.about}.")
    return lines


def spread_words(part: Part, facts: Sequence[Facts]) -> str:
    unit = MANY[part.keys.kind]
    away = f"; away: how many {unit} away on average" if part.one_sequence else ""
    if part.keys.kind == "frames" and part.one_sequence:
        away += f", of {part.keys.step * 1000:.0f} ms"
    elif part.keys.kind == "patches":
        away += "; 2,0 is the first patch of the third row"
    return f"bits: how broadly it looks, 0 at a single key, {facts[0].most:.2f} at all alike{away}."


def _row(part: Part, one: Facts) -> Row:
    return Row(
        one.layer,
        one.head,
        one.verdict,
        one.entropy,
        one.distance,
        part.queries.labels[one.strongest.query],
        part.keys.labels[one.strongest.key],
        one.strongest.weight,
    )
