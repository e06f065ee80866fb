"""Table 3 of the paper: every variation, with parameters counted by headwise beside those printed."""

from __future__ import annotations

from functools import cache
from typing import Any

from headwise.models.parameters import (
    PAPER_VOCABULARY,
    common_vocabularies,
    count_row,
    fitting_vocabularies,
)
from headwise.models.table3 import TABLE_3, Row, find_row
from headwise.study.visuals.base import Facts, Inputs, Table, VisualData
from headwise.study.visuals.wording import count, fixed

GROUPS = ("all", "A", "B", "C", "D", "E")
BEST_FIRST = ("bleu", "counted", "printed")  # sorted from the largest
FIELDS = {
    "counted": "parameters counted",
    "printed": "parameters printed",
    "perplexity": "perplexity",
    "bleu": "BLEU",
    "layers": "layers N",
    "d_model": "d_model",
    "d_ff": "d_ff",
    "heads": "heads h",
    "d_k": "d_k",
    "dropout": "dropout",
    "smoothing": "label smoothing",
}
DEFAULTS: dict[str, Any] = {
    "vocabulary": PAPER_VOCABULARY,
    "group": "all",
    "x": "counted",
    "y": "bleu",
    "sort": "paper",
    "row": "base",
}
MILLION = 1_000_000


def compute(inputs: Inputs) -> dict[str, Any]:
    """The rows of a group in the wanted order, each with its parameters for this vocabulary."""
    vocabulary = int(inputs["vocabulary"])
    rows = []
    for row in table_rows():
        if inputs["group"] != "all" and row["group"] not in ("base", inputs["group"]):
            continue
        counted = row["rest"] + vocabulary * row["d_model"]
        printed = row["printed"]
        matches = None if printed is None else (counted + MILLION // 2) // MILLION == printed
        rows.append({"name": row["name"], "counted": counted, "matches": matches})
    by_name = {row["name"]: row for row in table_rows()}
    sort = inputs["sort"]
    if sort != "paper":
        whole = [{**by_name[row["name"]], **row} for row in rows]
        known = [place for place, row in enumerate(whole) if row[sort] is not None]
        unknown = [place for place, row in enumerate(whole) if row[sort] is None]
        known.sort(key=lambda place: whole[place][sort], reverse=sort in BEST_FIRST)
        rows = [rows[place] for place in [*known, *unknown]]
    stated = [row for row in rows if row["matches"] is not None]
    chosen = by_name[inputs["row"]]
    return {
        "rows": rows,
        "matching": sum(bool(row["matches"]) for row in stated),
        "stated": len(stated),
        "parts": [
            {
                "name": part["name"],
                "parameters": vocabulary * chosen["d_model"]
                if part["name"] == "embeddings"
                else part["parameters"],
            }
            for part in chosen["parts"]
        ],
    }


@cache
def table_rows() -> tuple[dict[str, Any], ...]:
    """Every row with its settings, results, and its parameters but for the embedding ("rest")."""
    return tuple(_row(row) for row in TABLE_3)


def _row(row: Row) -> dict[str, Any]:
    config = row.config(PAPER_VOCABULARY)
    counts = count_row(row)
    per_head = config.d_model // config.num_heads
    return {
        "name": row.name,
        "group": row.name.split()[0],
        "change": ", ".join(f"{name} = {value}" for name, value in row.changes.items()) or "the base model",
        "layers": config.num_layers,
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "heads": config.num_heads,
        "d_k": config.d_k or per_head,
        "d_v": config.d_v or per_head,
        "dropout": config.dropout,
        "smoothing": config.label_smoothing,
        "positions": config.positions,
        "steps": row.steps,
        "perplexity": row.perplexity,
        "bleu": row.bleu,
        "printed": row.parameters,
        "parts": [{"name": part.name, "parameters": part.parameters} for part in counts.parts],
        "rest": counts.total - PAPER_VOCABULARY * config.d_model,
    }


def data(facts: Facts | None = None) -> VisualData:
    found = compute(DEFAULTS)
    by_name = {row["name"]: row for row in table_rows()}
    table = Table(
        f"Table 3, with parameters for a vocabulary of {count(DEFAULTS['vocabulary'])} tokens",
        ("row", "perplexity", "BLEU", "printed, million", "counted, million"),
        tuple(
            (
                row["name"],
                fixed(by_name[row["name"]]["perplexity"], 2),
                fixed(by_name[row["name"]]["bleu"], 1),
                "" if by_name[row["name"]]["printed"] is None else str(by_name[row["name"]]["printed"]),
                fixed(row["counted"] / MILLION, 2),
            )
            for row in found["rows"]
        ),
    )
    words = (
        f"With {count(DEFAULTS['vocabulary'])} tokens, {found['matching']} of {found['stated']} printed "
        f"parameter counts are met to the million."
    )
    low, high = common_vocabularies()
    big = fitting_vocabularies(find_row("big")) or (0, 0)
    return VisualData(
        {
            "rows": list(table_rows()),
            "fields": FIELDS,
            "groups": list(GROUPS),
            "common": [low, high],
            "big": list(big),
            "defaults": DEFAULTS,
        },
        table,
        words,
    )
