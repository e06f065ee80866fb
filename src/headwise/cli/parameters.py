"""`headwise parameters`: what the paper's models consist of, and what the paper prints."""

from __future__ import annotations

import json
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from headwise.cli.errors import UserError
from headwise.models.parameters import (
    ParameterCounts,
    common_vocabularies,
    count_row,
    fitting_vocabularies,
)
from headwise.models.table3 import TABLE_3, Row, find_row

COUNTED = (
    "Counted: attention without biases, the biases of feed-forward networks and norms, and one matrix of "
    "vocabulary x d_model for both embeddings and the projection before the softmax. The paper doesn't say "
    "what its column counts."
)


def parameters(name: str, *, vocab: int, as_json: bool) -> None:
    """Print the parts of one row of table 3, or all rows ("all").

    Raises:
        UserError: an unknown row, a vocabulary too small to hold the special tokens.
    """
    if vocab < 3:
        raise UserError(f"--vocab {vocab}: padding, beginning and end are tokens too, so 3 or more")
    try:
        rows = list(TABLE_3) if name.strip().lower() == "all" else [find_row(name)]
    except ValueError as error:
        raise UserError(f'{error}; "all" for all of them') from None
    counts = [count_row(row, vocab) for row in rows]
    if as_json:
        found = [_facts(row, count, vocab) for row, count in zip(rows, counts, strict=True)]
        print(json.dumps(found if name.strip().lower() == "all" else found[0], indent=2))
        return
    console = Console()
    if len(rows) == 1:
        console.print(_parts_table(rows[0], counts[0], vocab))
    else:
        console.print(_rows_table(rows, counts, vocab))
    for line in _notes(rows, counts):
        console.print(line, highlight=False)


def _facts(row: Row, counts: ParameterCounts, vocab: int) -> dict[str, Any]:
    fitting = fitting_vocabularies(row)
    return {
        "row": row.name,
        "vocabulary": vocab,
        "parts": [
            {"name": part.name, "count": part.count, "each": part.each, "parameters": part.parameters}
            for part in counts.parts
        ],
        "layers": counts.layers,
        "total": counts.total,
        "paper_millions": row.parameters,
        "vocabularies_that_fit_the_paper": None if fitting is None else list(fitting),
    }


def _parts_table(row: Row, counts: ParameterCounts, vocab: int) -> Table:
    table = Table(title=f"Parameters of {row.name!r}, vocabulary {vocab:,}", box=box.SIMPLE_HEAD)
    table.add_column("part")
    for column in ("modules", "each", "together"):
        table.add_column(column, justify="right")
    for part in counts.parts:
        each = "" if part.each is None else f"{part.each:,}"
        table.add_row(part.name, str(part.count), each, f"{part.parameters:,}")
    table.add_section()
    table.add_row("all layers", "", "", f"{counts.layers:,}")
    table.add_row("total", "", "", f"{counts.total:,}")
    return table


def _rows_table(rows: list[Row], counts: list[ParameterCounts], vocab: int) -> Table:
    table = Table(title=f"Table 3, vocabulary {vocab:,}", box=box.SIMPLE_HEAD)
    table.add_column("row", no_wrap=True)
    for column in ("parameters", "millions", "paper", "vocabularies that give it"):
        table.add_column(column, justify="right")
    for row, count in zip(rows, counts, strict=True):
        fitting = fitting_vocabularies(row)
        table.add_row(
            row.name,
            f"{count.total:,}",
            f"{count.total / 1e6:.2f}",
            "" if row.parameters is None else str(row.parameters),
            "" if fitting is None else f"{fitting[0]:,} .. {fitting[1]:,}",
        )
    return table


def _notes(rows: list[Row], counts: list[ParameterCounts]) -> list[str]:
    notes = []
    if len(rows) == 1:
        row, millions = rows[0], counts[0].total / 1e6
        fitting = fitting_vocabularies(row)
        if fitting is None:
            notes.append(f"{millions:.2f} million; the paper's table 3 prints none for this row.")
        else:
            notes.append(
                f"{millions:.2f} million; the paper prints {row.parameters}, which a vocabulary of "
                f"{fitting[0]:,} to {fitting[1]:,} would give."
            )
    low, high = common_vocabularies()
    big = fitting_vocabularies(find_row("big"))
    notes.append(COUNTED)
    if any("positions" in row.changes for row in rows):
        most = find_row("E learned").config(3).max_length
        notes.append(
            f"Learned positions: one table for the source and one for the target, of {most:,} vectors each; "
            "the paper doesn't say how many."
        )
    if big is not None:
        notes.append(
            f"Of the rows with a printed count, all but big round to it for any vocabulary of {low:,} to "
            f"{high:,}, and big for {big[0]:,} to {big[1]:,}: no single vocabulary gives every row."
        )
    return notes
