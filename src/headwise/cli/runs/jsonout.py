"""The same for programs. docs/see.md describes the fields."""

from __future__ import annotations

from typing import Any

from headwise._version import __version__
from headwise.cli.classify import ALSO, BROAD, MOSTLY, SINGLE, TIMES_EVEN
from headwise.cli.jsonout import SCHEMA, rounded
from headwise.cli.runs.table import chosen_facts
from headwise.cli.runs.view import Answered, Axis, Classified, Facts, Heard, Part, View, Written


def as_json(view: View, *, layer: int | None, head: int | None) -> dict[str, Any]:
    """A dictionary of plain numbers, strings and lists."""
    return {
        "schema": SCHEMA,
        "headwise": __version__,
        "run": {"name": view.run, "application": view.application, "checkpoint": view.checkpoint},
        "input": {"origin": view.origin, "notes": list(view.notes)},
        "output": _result(view),
        "rules": {
            "mostly": MOSTLY,
            "also": ALSO,
            "times_even": TIMES_EVEN,
            "broad": BROAD,
            "single": SINGLE,
        },
        "row_sum_error": view.row_sum_error,
        "parts": [_part(part, layer, head) for part in view.parts],
    }


def _result(view: View) -> dict[str, Any]:
    found = view.result
    if isinstance(found, Written):
        return {
            "text": found.output,
            "source": found.source,
            "log_probability": round(found.log_probability, 6),
            "finished": found.finished,
            "beam": found.beam,
            "copied": [round(share, 6) for share in found.copied],
        }
    if isinstance(found, Answered):
        tokens = view.parts[0].queries.labels

        def likely(places: tuple[tuple[int, float], ...]) -> list[dict[str, Any]]:
            return [
                {"index": place, "token": tokens[place], "probability": round(share, 6)}
                for place, share in places
            ]

        return {
            "text": found.output,
            "question": found.question,
            "span": list(found.span),
            "starts": likely(found.starts),
            "ends": likely(found.ends),
        }
    if isinstance(found, Classified):
        shares = {name: round(share, 6) for name, share in found.probabilities.items()}
        return {"text": found.output, "probabilities": shares}
    if isinstance(found, Heard):
        return {
            "text": found.output,
            "decoder": found.written,
            "seconds": found.seconds,
            "symbols": [
                {"frame": frame, "symbol": symbol, "probability": round(share, 6)}
                for frame, symbol, share in found.symbols
            ],
        }
    raise TypeError(f"no result: {found!r}")


def _axis(axis: Axis) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": axis.kind, "labels": list(axis.labels), "special": list(axis.special)}
    if axis.kind == "patches":
        found["grid"] = list(axis.grid)
    if axis.kind == "frames":
        found["seconds"] = axis.step
    return found


def _part(part: Part, layer: int | None, head: int | None) -> dict[str, Any]:
    heads = []
    for one in chosen_facts(part, layer, head):
        found = _head(part, one)
        if layer is not None or head is not None:
            found["weights"] = _matrix(part.maps[one.layer, one.head])
        heads.append(found)
    whole: dict[str, Any] = {
        "name": part.key,
        "title": part.title,
        "layers": part.layers,
        "heads": part.heads,
        "queries": _axis(part.queries),
        "keys": _axis(part.keys),
        "cells": list(part.maps.shape[-2:]),
        "sharpest_layer": part.sharpest,
        "facts": heads,
    }
    if part.key in ("cross", "copy", "rollout"):
        at = part.layers - 1 if part.key == "rollout" else part.sharpest
        whole["mean"] = {"layer": at, "weights": _matrix(part.mean(at))}
    return whole


def _matrix(weights: Any) -> list[list[float]]:
    return [[round(weight, 6) for weight in row] for row in weights.tolist()]


def _head(part: Part, one: Facts) -> dict[str, Any]:
    strongest = one.strongest
    return {
        "layer": one.layer,
        "head": one.head,
        "kind": one.verdict.kind,
        "words": one.verdict.words,
        "shares": rounded(dict(one.shares)),
        "even": rounded(dict(one.even)),
        "entropy_bits": round(one.entropy, 6),
        "most_bits": round(one.most, 6),
        "evenness": round(one.evenness, 6),
        "distance": None if one.distance is None else round(one.distance, 6),
        "largest": round(one.largest, 6),
        "strongest": {
            "query": {"index": strongest.query, "token": part.queries.labels[strongest.query]},
            "key": {"index": strongest.key, "token": part.keys.labels[strongest.key]},
            "weight": round(strongest.weight, 6),
        },
    }
