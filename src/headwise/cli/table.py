"""What every head does, as a table in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from headwise.cli.classify import RULES
from headwise.cli.errors import printable
from headwise.cli.look import HeadFacts, Seen

STYLES = {
    "previous": "cyan",
    "next": "blue",
    "itself": "green",
    "same": "magenta",
    "first": "yellow",
    "separator": "yellow",
    "punctuation": "red",
    "nearby": "cyan",
    "broad": "dim",
    "mixed": "dim",
}


def heads_table(seen: Seen, chosen: Sequence[HeadFacts], *, arrow: str, width: int) -> Table:
    """A row per head, in a terminal of this many columns."""
    free = width - 37  # what the numbers and the gaps leave
    say = min(max(free * 57 // 100, 12), 40)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("head", justify="right", no_wrap=True, width=5)
    table.add_column("mostly attends to", overflow="ellipsis", no_wrap=True, width=say)
    table.add_column("bits", justify="right", no_wrap=True, width=4)
    table.add_column("away", justify="right", no_wrap=True, width=5)
    table.add_column(
        f"strongest {arrow} pair", overflow="ellipsis", no_wrap=True, width=min(max(free - say, 12), 36)
    )
    table.add_column("weight", justify="right", no_wrap=True, width=6)
    layer = -1
    for facts in chosen:
        if layer not in (-1, facts.layer):
            table.add_section()
        layer = facts.layer
        strongest = facts.strongest
        pair = f"{_token(seen, strongest.query)} {arrow} {_token(seen, strongest.key)}"
        table.add_row(
            f"{facts.layer}.{facts.head}",
            Text(facts.verdict.words, style=STYLES[facts.verdict.kind]),
            f"{facts.entropy:.2f}",
            f"{facts.distance:.1f}",
            Text(pair),
            f"{strongest.weight:.3f}",
        )
    return table


def pairs_table(seen: Seen, layer: int, head: int, *, arrow: str, most: int = 3) -> Table:
    """The strongest keys of every token, for one head."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("query", no_wrap=True, overflow="ellipsis")
    table.add_column(f"{arrow} keys that it attends to most", no_wrap=True, overflow="ellipsis")
    for query in range(len(seen.reading.tokens)):
        keys = seen.top_keys[layer, head, query, :most].tolist()
        weights = seen.top_weights[layer, head, query, :most].tolist()
        words = "  ".join(
            f"{_token(seen, key)} {weight:.3f}" for key, weight in zip(keys, weights, strict=True) if key >= 0
        )
        table.add_row(str(query), Text(_token(seen, query)), Text(words))
    return table


def print_heads(console: Console, seen: Seen, chosen: Sequence[HeadFacts], *, arrow: str) -> None:
    """Headline, table and how to read it."""
    console.print(headline(seen), highlight=False)
    for note in notes(seen):
        console.print(escape(note), style="yellow", highlight=False)
    console.print(heads_table(seen, chosen, arrow=arrow, width=console.width))
    if len(chosen) == 1:
        console.print(pairs_table(seen, chosen[0].layer, chosen[0].head, arrow=arrow))
    console.print(
        f"{RULES} Layers and heads count from 0. Bits: mean entropy, at most {seen.most_bits:.2f} here. "
        f"Away: mean distance in tokens. Strongest pair: query {arrow} key, special tokens aside. "
        f"Largest |row sum - 1|: {seen.row_sum_error:.0e}.",
        style="dim",
        highlight=False,
    )


def headline(seen: Seen) -> Text:
    size = len(seen.reading.tokens)
    text = Text.assemble((printable(seen.model), "bold"))
    return text.append(f": {seen.layers} layers x {seen.heads} heads, {size} tokens")


def notes(seen: Seen) -> list[str]:
    """What a reader must know about what was left out or joined."""
    reading = seen.reading
    if reading.cut:
        return [
            f"The text has {reading.whole} tokens and the model takes {seen.limit}: these are the first "
            f"{len(reading.tokens)}, [CLS] and [SEP] included. --stride 256 reads the whole text in windows."
        ]
    if len(reading.windows) > 1:
        return [
            f"The text has {reading.whole} tokens and the model takes {seen.limit}: it was read in "
            f"{len(reading.windows)} windows, and each token is shown as that window saw it in which it has "
            "most neighbours. Tokens of different windows never meet."
        ]
    return []


def _token(seen: Seen, place: int) -> str:
    return printable(seen.reading.tokens[place])
