"""What every head does, as a table in the terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from headwise.cli.classify import FEW, NAMES, PLURALS, RULES, Verdict
from headwise.cli.counts import count
from headwise.cli.errors import printable
from headwise.cli.look import UNKNOWN, HeadFacts, Seen
from headwise.cli.wording import shown, shown_pair, width

GAP = 2  # columns between two columns of a table
NARROW = 56  # with fewer columns two numbers are left out
UNCUT = 10_000  # wider than any table
LISTED = 12  # heads of one kind that are listed by number
SAYS = "mostly attends to"

STYLES = {
    "previous": "cyan",
    "next": "blue",
    "itself": "green",
    "same": "magenta",
    "first": "yellow",
    "separator": "yellow",
    "punctuation": "red",
    "nearby": "cyan",
    "single": "green",
    "broad": "dim",
    "mixed": "dim",
}


class Row(NamedTuple):
    """A head in a table. distance: None where its two sides are no one sequence."""

    layer: int
    head: int
    verdict: Verdict
    entropy: float
    distance: float | None
    query: str
    key: str
    weight: float


def heads_table(seen: Seen, chosen: Sequence[HeadFacts], *, arrow: str, room: int | None) -> Table:
    """A row per head, in at most `room` columns."""
    tokens = seen.reading.tokens
    rows = [
        Row(
            one.layer,
            one.head,
            one.verdict,
            one.entropy,
            one.distance,
            tokens[one.strongest.query],
            tokens[one.strongest.key],
            one.strongest.weight,
        )
        for one in chosen
    ]
    return rows_table(rows, arrow=arrow, room=room)


def rows_table(chosen: Sequence[Row], *, arrow: str, room: int | None) -> Table:
    """A row per head, in at most `room` columns: first the words get shorter, then tokens are cut.
    None: as wide as it needs to be. There is no column "away" where no head has a distance."""
    far = max(len(_away(row)) for row in chosen)
    columns = {"head": 4, "bits": 4, "away": max(far, 4), "weight": 6}
    if all(row.distance is None for row in chosen):
        del columns["away"]
    if room is not None and room < NARROW:
        columns = {"head": 4, "weight": 6}
    free = None if room is None else max(room - sum(columns.values()) - (len(columns) + 1) * GAP, 20)
    words = [row.verdict.words for row in chosen]
    pair_title = f"strongest {arrow} pair"
    need = max(len(pair_title), *(width(row.query) + width(row.key) + len(arrow) + 2 for row in chosen))
    if free is not None and max(map(len, words)) + need > free:
        words = [row.verdict.brief for row in chosen]
    say = max(len(SAYS), *map(len, words))
    if free is not None and say + need > free:
        say = min(say, max(free - need, free * 3 // 5))
        need = free - say
        pair_title = pair_title if need >= len(pair_title) else f"{arrow} pair"
    table = plain_table()
    table.add_column("head", justify="right", no_wrap=True, width=columns["head"])
    table.add_column(SAYS, overflow="ellipsis", no_wrap=True, width=say)
    for name in ("bits", "away"):
        if name in columns:
            table.add_column(name, justify="right", no_wrap=True, width=columns[name])
    table.add_column(pair_title, overflow="ellipsis", no_wrap=True, width=need)
    table.add_column("weight", justify="right", no_wrap=True, width=columns["weight"])
    layer = -1
    for row, word in zip(chosen, words, strict=True):
        if layer not in (-1, row.layer):
            table.add_section()
        layer = row.layer
        spread = {"bits": f"{row.entropy:.2f}", "away": _away(row)}
        table.add_row(
            f"{row.layer}.{row.head}",
            Text(word, style=STYLES[row.verdict.kind]),
            *[value for name, value in spread.items() if name in columns],
            Text(shown_pair(row.query, row.key, arrow=arrow, room=need)),
            f"{row.weight:.3f}",
        )
    return table


def _away(row: Row) -> str:
    return "" if row.distance is None else f"{row.distance:.1f}"


def pairs_table(
    seen: Seen, layer: int, head: int, *, arrow: str, room: int | None = None, most: int = 3
) -> Table:
    """The strongest keys of every token, for one head."""
    tokens = seen.reading.tokens
    longest = max(map(width, tokens))
    cell = longest
    if room is not None:  # a number, a query, and `most` times a key, its weight and what lies between
        free = room - 5 - 2 * GAP
        most = max(1, min(most, (free - 6) // 14))
        cell = min(longest, max((free - most * 8) // (most + 1), 4))
    table = plain_table()
    table.add_column("", justify="right", no_wrap=True, width=len(str(len(tokens) - 1)))
    table.add_column("query", no_wrap=True, overflow="ellipsis", width=max(cell, 5))
    title = f"{arrow} keys that it attends to most" if most > 1 else f"{arrow} its first key"
    table.add_column(title, no_wrap=True, overflow="ellipsis")
    for query in range(len(tokens)):
        keys = seen.top_keys[layer, head, query, :most].tolist()
        weights = seen.top_weights[layer, head, query, :most].tolist()
        words = "  ".join(
            f"{shown(tokens[key], cell)} {weight:.3f}"
            for key, weight in zip(keys, weights, strict=True)
            if key >= 0
        )
        table.add_row(str(query), Text(shown(tokens[query], cell)), Text(words))
    return table


def print_heads(console: Console, seen: Seen, chosen: Sequence[HeadFacts], *, arrow: str) -> None:
    """Headline, table and how to read it. Where nobody watches (a pipe, a file) nothing is cut, unless
    COLUMNS asks for a width."""
    room = console.width if console.is_terminal or "COLUMNS" in os.environ else None
    wide = console.width if room is None else room
    console.print(headline(seen), highlight=False)
    for note in notes(seen):
        console.print(escape(note), style="yellow", highlight=False)
    if len(chosen) > 1:
        console.print(summary(chosen), highlight=False)
    console.print(
        f"bits: how broadly it looks, 0 at one token, {seen.most_bits:.2f} at all alike; "
        "away: how many tokens away on average.",
        style="dim",
        highlight=False,
    )
    tables = [heads_table(seen, chosen, arrow=arrow, room=room)]
    if len(chosen) == 1:
        tables.append(pairs_table(seen, chosen[0].layer, chosen[0].head, arrow=arrow, room=room))
    for table in tables:
        console.print()
        console.print(table, width=None if room is not None else max(wide, UNCUT))
    console.print(
        f"\n{RULES} Layers and heads count from 0. Strongest pair: query {arrow} key, special tokens aside. "
        f"Self-check: the weights of a token add up to 1, to within {seen.row_sum_error:.0e}.",
        style="dim",
        highlight=False,
    )


def summary(chosen: Sequence[HeadFacts]) -> str:
    """Which heads have a name: "1 previous-token head (0.2), 1 next-token head (1.8), ..., 34 mixed"."""
    said = []
    for kind in NAMES:
        own = [f"{facts.layer}.{facts.head}" for facts in chosen if facts.verdict.kind == kind]
        if not own:
            continue
        if kind in ("broad", "mixed"):
            said.append(f"{len(own)} {kind}")
            continue
        name = PLURALS[kind] if len(own) > 1 else PLURALS[kind].replace("heads", "head", 1)
        where = own if len(own) <= LISTED else [*own[:LISTED], "..."]
        said.append(f"{len(own)} {name} ({', '.join(where)})")
    return ", ".join(said) + "."


def headline(seen: Seen) -> Text:
    size = len(seen.reading.tokens)
    text = Text.assemble((printable(seen.model), "bold"))
    return text.append(f": {seen.layers} layers x {seen.heads} heads, {size} tokens")


def notes(seen: Seen) -> list[str]:
    """What a reader must know about what was left out or joined."""
    reading = seen.reading
    found = []
    content = reading.special.count(False)
    if content < FEW:
        found.append(
            f"The text has {count(content, 'token')} besides [CLS] and [SEP], which says little about what "
            f"a head does in general: give {FEW} or more."
        )
    if seen.unknown:
        found.append(
            f"{count(seen.unknown, 'word')} of the text {'is' if seen.unknown == 1 else 'are'} unknown to "
            f"this model: it reads {UNKNOWN} instead."
        )
    if reading.cut:
        found.append(
            f"The text has {reading.whole} tokens and the model takes {seen.limit}: these are the first "
            f"{len(reading.tokens)}, [CLS] and [SEP] included. --stride 256 reads the whole text in windows."
        )
    if len(reading.windows) > 1:
        found.append(
            f"The text has {reading.whole} tokens and the model takes {seen.limit}: it was read in "
            f"{len(reading.windows)} windows, and each token is shown as that window saw it in which it has "
            "most neighbours. Tokens of different windows never meet."
        )
    return found


def plain_table() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
