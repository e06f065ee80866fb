"""The page of a run: one HTML file that needs nothing else, made as the report on a text is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from headwise.cli.classify import MEANINGS, NAMES, SHORT, SINGLE, rules_over, worded
from headwise.cli.page import assemble, pack, png
from headwise.cli.runs.blocks import resized, scaled
from headwise.cli.runs.view import MANY, Answered, Axis, Classified, Facts, Heard, Part, Result, View, Written

SCRIPTS = ("base.js", "run.js", "palette.js", "grid.js", "map.js", "head.js", "page.js")
KINDS: Mapping[type[Result], tuple[str, str, str, str]] = {
    Written: ("written", "text", "reading", "What it wrote"),
    Answered: ("answered", "text", "reading", "What it answered"),
    Classified: ("classified", "image", "looking at", "What it sees"),
    Heard: ("heard", "sound", "listening to", "What it heard"),
}
MOST_CLASSES = 5
WIDEST = 800  # columns of a picture of a sound


def render(view: View, *, layer: int | None = None, head: int | None = None) -> str:
    """The whole page.

    Args:
        layer, head: what it opens with; None: what says most
    """
    kind, what, verb, title = KINDS[type(view.result)]
    if isinstance(view.result, Written) and view.application == "translation":
        title = "The translation"
    parts = list(view.parts)
    axes = list({id(axis): axis for part in parts for axis in (part.queries, part.keys)}.values())
    rows = [(at, one) for at, part in enumerate(parts) for one in range(part.layers)]
    image, classes = None, []
    if isinstance(view.result, Classified):
        classes = list(view.result.probabilities.items())[:MOST_CLASSES]
        _, height, width = view.result.pixels.shape
        image = {"href": png(_colours(view.result.pixels)), "width": width, "height": height}
    sound = _sound(view.result, axes) if isinstance(view.result, Heard) else None
    row = _row(view)
    found = [one for part in parts for line in part.facts for one in line]
    kinds = [one.verdict.kind for one in found]
    data = {
        "what": what,
        "axes": [_axis(axis) for axis in axes],
        "parts": [_part(part, axes, row or 0) for part in parts],
        "rows": [{"part": part, "layer": one} for part, one in rows],
        "first": _first(view, rows, layer, head),
        "image": image,
        "sound": sound,
        "row": row,
    }
    return assemble(
        "run.html.j2",
        styles=("report.css", "run.css"),
        scripts=SCRIPTS,
        view=view,
        kind=kind,
        verb=verb,
        size=sum(not one for one in parts[0].keys.special) if what == "text" else 0,
        result=view.result,
        result_title=title,
        labels=parts[0].queries.labels,
        copied=_copied(view),
        image=image,
        classes=classes,
        mel=None if sound is None else sound["href"],
        frames=next((axis for axis in axes if axis.kind == "frames"), None),
        pooled=[part for part in parts if not (part.queries.whole and part.keys.whole)],
        many=MANY,
        kinds=[(one, kinds.count(one)) for one in NAMES if one in kinds],
        kind_names={one: worded(SHORT[one], parts[0].keys.unit) for one in NAMES},
        meanings=_meanings(parts[0].keys),
        rules=f"{rules_over(parts[0].keys.unit)} Single keys: a head that would be mixed, whose queries' "
        f"largest weights are {SINGLE:.0%} or more on average. Tokens of an output, patches, "
        "frames are queries as tokens are.",
        grid=[_grid(part, rows.index((at, 0))) for at, part in enumerate(parts)],
        data=data,
        weights=[(part.key, pack(part.maps)) for part in parts],
    )


def _copied(view: View) -> list[tuple[str, float]]:
    copying = view.part("copy")
    if copying is None or not isinstance(view.result, Written):
        return []
    return list(zip(copying.queries.labels, view.result.copied, strict=True))


def _first(view: View, rows: list[tuple[int, int]], layer: int | None, head: int | None) -> tuple[int, int]:
    part, at = view.opening(layer)
    return rows.index((view.parts.index(part), at)), part.heads if head is None else head


def _row(view: View) -> int | None:
    """The query that a page opens with, where one is of more interest than that of the strongest pair: the
    class token, the first token of an answer."""
    if isinstance(view.result, Classified):
        return 0
    if isinstance(view.result, Answered):
        return _cell(view.result.starts[0][0], view.parts[0].queries)
    return None


def _axis(axis: Axis) -> dict[str, Any]:
    return {
        "kind": axis.kind,
        "unit": axis.unit,
        "many": MANY[axis.kind],
        "labels": list(axis.cell_labels),
        "whole": axis.whole,
        "grid": list(axis.grid),
    }


def _part(part: Part, axes: list[Axis], row: int) -> dict[str, Any]:
    places = {id(axis): place for place, axis in enumerate(axes)}
    unit = part.keys.unit
    return {
        "key": part.key,
        "title": part.title,
        "queries": places[id(part.queries)],
        "keys": places[id(part.keys)],
        "heads": part.heads,
        "names": {kind: worded(name, unit) for kind, name in NAMES.items()},
        "meanings": _meanings(part.keys),
        "facts": [
            [
                *(_facts(part, one, row) for one in (part.facts[at] if part.facts else ())),
                _mean(part, at, row),
            ]
            for at in range(part.layers)
        ],
    }


def _facts(part: Part, one: Facts, row: int) -> dict[str, Any]:
    return {
        "kind": one.verdict.kind,
        "also": [list(pair) for pair in one.verdict.also],
        "shares": {kind: None if share is None else round(share, 4) for kind, share in one.shares.items()},
        "even": {kind: None if share is None else round(share, 4) for kind, share in one.even.items()},
        "entropy": round(one.entropy, 3),
        "most": round(one.most, 3),
        "distance": None if one.distance is None else round(one.distance, 2),
        "largest": round(one.largest, 4),
        "strongest": [
            _cell(one.strongest.query, part.queries),
            _cell(one.strongest.key, part.keys),
            round(one.strongest.weight, 3),
        ],
        "of_row": _best(part.maps[one.layer, one.head], row),
    }


def _best(matrix: Tensor, row: int) -> int:
    """What a query gives most to; the first query, where there is no such row."""
    return int(matrix[row if row < len(matrix) else 0].argmax())


def _cell(place: int, axis: Axis) -> int:
    return place * axis.cells // len(axis.labels)


def _mean(part: Part, layer: int, row: int) -> dict[str, Any]:
    """What the page says of the mean over heads."""
    weights = part.mean(layer).clone()
    for axis, side in ((part.queries, 0), (part.keys, 1)):
        if axis.whole and not all(axis.special):
            at = [place for place, special in enumerate(axis.special) if special]
            (weights if side == 0 else weights.t())[at] = -1.0
    query, key = divmod(int(weights.argmax()), weights.shape[1])
    says = (
        f"The mean over the {part.heads} heads of this layer."
        if part.heads
        else f"{part.about[0].upper()}{part.about[1:]}."
    )
    return {
        "kind": "mean",
        "says": says,
        "also": [],
        "shares": {},
        "even": {},
        "strongest": [query, key, round(float(part.mean(layer)[query, key]), 3)],
        "of_row": _best(part.mean(layer), row),
    }


def _grid(part: Part, first_row: int) -> dict[str, Any]:
    """What the template shows of a part: lines of small maps, and the facts of all heads."""
    cells = []
    for layer in range(part.layers):
        heads = part.facts[layer] if part.facts else ()
        line = [
            {
                "kind": one.verdict.kind,
                "name": f"{part.key} {layer}.{one.head}",
                "words": one.verdict.words,
                "label": f"layer {layer}, head {one.head}: {one.verdict.words}",
                "short": str(one.head),
            }
            for one in heads
        ]
        mean = {"kind": "mean", "name": f"{part.key} {layer}", "words": "mean over the heads"}
        mean |= {"label": f"layer {layer}, mean over the heads", "short": "mean"}
        if not part.heads:
            mean |= {"words": "up to this layer", "label": f"layer {layer}", "short": str(layer)}
        if len(heads) != 1:  # the mean over one is that one
            line.append(mean)
        cells.append([{**cell, "row": first_row + layer, "column": at} for at, cell in enumerate(line)])
    lines = [{"title": f"Layer {layer}", "cells": line} for layer, line in enumerate(cells)]
    if not part.heads:  # one map for each layer: all in a line
        lines = [{"title": "After layer", "cells": [cell for line in cells for cell in line]}]
    return {
        "key": part.key,
        "title": part.title,
        "about": part.about,
        "facts": [one for line in part.facts for one in line],
        "one_sequence": part.one_sequence,
        "query_axis": part.queries,
        "key_axis": part.keys,
        "lines": lines,
        "first_row": first_row,
    }


def _meanings(axis: Axis) -> dict[str, str]:
    found = {kind: worded(meaning, axis.unit) for kind, meaning in MEANINGS.items()}
    found["separator"] = "what ends a text, [EOS]: often a place to rest when there is nothing to look for"
    found["first"] = {
        "text": "the first token: often a place to rest when there is nothing to look for",
        "patches": "the class token, which gathers what the image shows",
        "frames": "the first frame: often a place to rest when there is nothing to look for",
    }[axis.kind]
    if axis.kind == "patches":
        found["itself"], found["nearby"] = (
            "the patch itself",
            "itself and the patches beside, above and below",
        )
    return found


def _colours(pixels: Tensor) -> Tensor:
    """As a picture has them: one channel, or three."""
    return pixels if pixels.shape[0] in (1, 3) else pixels[:1]


def _sound(result: Heard, axes: list[Axis]) -> dict[str, Any]:
    place = next(at for at, axis in enumerate(axes) if axis.kind == "frames")
    features = result.features.t().flip(0)  # high above low
    if features.shape[1] > WIDEST:
        features = resized(features, features.shape[0], WIDEST)
    grey = 255 - (scaled(features) * 255).round()
    return {
        "href": png(grey.byte()[None]),
        "frames": place,
        "count": len(axes[place].labels),
        "seconds": round(len(axes[place].labels) * axes[place].step, 4),
        "symbols": [[frame, symbol] for frame, symbol, _ in result.symbols],
    }
