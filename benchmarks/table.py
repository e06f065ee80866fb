"""Tables, as aligned text and as Markdown, and what a claim makes of one."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Claim:
    """Something that should hold in every row; `missed` names the rows where it doesn't, `named` says whether
    they are printed."""

    text: str
    rows: int
    missed: tuple[str, ...]
    named: bool = True

    def __str__(self) -> str:
        if not self.rows:
            return f"{self.text}: no row says anything of it"
        held = f"{self.text}: holds in {self.rows - len(self.missed)} of {self.rows} rows"
        return held + (f"; not in {'; '.join(self.missed)}" if self.missed and self.named else "")


@dataclass
class Table:
    title: str
    columns: tuple[str, ...]
    words: int  # how many columns hold words, which stand on the left
    rows: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def widths(self) -> list[int]:
        return [max(len(row[i]) for row in (self.columns, *self.rows)) for i in range(len(self.columns))]

    def line(self, row: tuple[str, ...], widths: list[int]) -> str:
        cells = (
            cell.ljust(width) if place < self.words else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    def text(self) -> str:
        widths = self.widths()
        return "\n".join(
            [self.title, "", *(self.line(row, widths) for row in (self.columns, *self.rows)), *self.notes]
        )

    def markdown(self) -> str:
        rule = [":--" if place < self.words else "--:" for place in range(len(self.columns))]
        rows = ["| " + " | ".join(row) + " |" for row in (self.columns, tuple(rule), *self.rows)]
        return "\n".join([f"**{self.title}**", "", *rows, "", *(f"- {note}" for note in self.notes)]).rstrip()


def milliseconds(seconds: float) -> str:
    value = seconds * 1e3
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
