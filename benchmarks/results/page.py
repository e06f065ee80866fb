"""From facts to the page: docs/results.md, section by section between its markers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.document import put
from benchmarks.results import ablation_page
from benchmarks.results import heads as of_heads
from benchmarks.results.heads import KINDS, Head
from benchmarks.results.sections import SECTIONS, WORDS, Section, asked, goal, shown

DOCS = Path(__file__).parents[2] / "docs"
LONGEST = 300
"""Letters of an input that are shown."""


def write(docs: Path = DOCS) -> Path:
    """Write the page again from the facts that are kept in docs/results."""
    page = docs / "results.md"
    found = {section.name: facts_of(section, docs) for section in SECTIONS}
    text = put(page.read_text(encoding="utf-8"), "summary", summary(found), page=page)
    for section in SECTIONS:
        text = put(text, section.name, body(section, found[section.name], docs), page=page)
    text = put(text, ablation_page.NAME, ablation_page.body(docs), page=page)
    page.write_text(text, encoding="utf-8")
    return page


def facts_of(section: Section, docs: Path = DOCS) -> dict[str, Any] | None:
    """What is known of a section's run; None where it hasn't been run."""
    path = docs / "results" / f"{section.name}.json"
    found: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    return found


def main_evaluation(facts: Mapping[str, Any], checkpoint: str | None = None) -> dict[str, Any]:
    """The test set by a checkpoint; None for the one that counts."""
    wanted = ("test", checkpoint or facts["checkpoint"])
    found: dict[str, Any] = next(
        one for one in facts["evaluations"] if (one["split"], one["checkpoint"]) == wanted
    )
    return found


def verdict(section: Section, facts: Mapping[str, Any]) -> str:
    """Whether what is asked for is reached: "reached", "missed", or "none was set"."""
    if not section.targets:
        return "none was set"
    figures = main_evaluation(facts)["figures"]
    fine = [target.reached(figures[target.figure]) for target in section.targets]
    fine.append(facts["seconds"] / 60 <= section.minutes)
    fine.append(section.parameters is None or facts["parameters"] < section.parameters)
    return "reached" if all(fine) else "missed"


def summary(found: Mapping[str, Mapping[str, Any] | None]) -> str:
    """One line for each section."""
    lines = [
        "| | asked for | reached (95 % interval) | minutes | parameters | |",
        "|---|---|---|--:|--:|---|",
    ]
    for section in SECTIONS:
        facts = found[section.name]
        link = f"[{section.title}](#{anchor(section.title)})"
        if facts is None:
            lines.append(f"| {link} | {asked(section)} | | | | not run yet |")
            continue
        figures = main_evaluation(facts)["figures"]
        names = [target.figure for target in section.targets] or [_first(figures)]
        reached = "; ".join(f"{WORDS[name]} {with_interval(figures, name)}" for name in names)
        minutes = f"{facts['seconds'] / 60:.0f}"
        lines.append(
            f"| {link} | {asked(section)} | {reached} | {minutes} | {facts['parameters']:,} "
            f"| {verdict(section, facts)} |"
        )
    return "\n".join(lines)


def anchor(title: str) -> str:
    """What GitHub makes of a title."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in "-_ ")
    return kept.replace(" ", "-")


def with_interval(figures: Mapping[str, float], name: str) -> str:
    value = shown(name, figures[name])
    if f"{name}_low" not in figures:
        return value
    return f"{value} ({shown(name, figures[f'{name}_low'])} to {shown(name, figures[f'{name}_high'])})"


def _first(figures: Mapping[str, float]) -> str:
    return next(name for name in figures if name in WORDS)


def body(section: Section, facts: Mapping[str, Any] | None, docs: Path = DOCS) -> str:
    """Everything that a section shows."""
    lines = [f"{section.about} Licence: {section.licence}.", "", f"Asked for: {asked(section)}.", ""]
    if facts is None:
        commands = (section.fetched, section.command(f"--budget {section.minutes}"))
        lines += ["**Not run yet.** It is run by", "", "```sh", *filter(None, commands), "```"]
        lines += _published(section)
        return "\n".join(lines).strip()
    lines += [*_training(section, facts), ""]
    lines += [*_figures(section, facts), ""]
    lines += [*_published(section), ""]
    lines += [f"![Learning curves](images/results/{section.name}-curves.svg)", ""]
    lines += [*_outputs(facts), ""]
    lines += list(_heads(section, facts))
    return "\n".join(lines).strip().replace("\n\n\n", "\n\n")


def evaluation_command(facts: Mapping[str, Any], checkpoint: str) -> str:
    """What evaluates a checkpoint of the run."""
    return f"headwise evaluate {facts['command'].rpartition('--out ')[2]} --checkpoint {checkpoint}"


def _training(section: Section, facts: Mapping[str, Any]) -> Iterator[str]:
    data, best, machine = facts["data"], facts["best"], facts["machine"]
    yield "```sh"
    if section.fetched:
        yield section.fetched
    yield facts["command"]
    yield evaluation_command(facts, facts["checkpoint"])
    yield "```"
    yield ""
    yield (
        f"- **Data**: {data['train']:,} {data['what']} to learn from, {data['valid']:,} for validation, "
        f"{data['test']:,} for the test."
    )
    minutes = facts["seconds"] / 60
    when = "" if best["seconds"] is None else f", after {best['seconds'] / 60:.0f} minutes"
    yield (
        f"- **Training**: {minutes:.1f} minutes, {facts['step']:,} steps, epoch {facts['epoch']}, seed "
        f"{facts['seed']}, {facts['precision']}. Best {_said(best['metric'])} in validation, "
        f"{shown(best['metric'], best['value'])}, at step {best['step']:,}{when}."
    )
    if not facts["finished"]:
        yield "- **Stopped before its end**: its recipe would let it go on."
    if machine:
        threads = f"{machine['threads']} thread{'s' if machine['threads'] != 1 else ''}"
        yield (
            f"- **Machine**: {machine['processor']}, {threads} of {machine['cores']} cores; torch "
            f"{machine['torch']}, Python {machine['python']}, headwise {facts['headwise']}."
            + (f" {facts['note']}" if facts["note"] else "")
        )
    else:
        yield f"- **Machine**: the run doesn't say. {facts['note']}".rstrip()
    yield f"- **Model**: {facts['parameters']:,} parameters."


def _said(figure: str) -> str:
    return WORDS.get(figure, figure.replace("_", " "))


def _figures(section: Section, facts: Mapping[str, Any]) -> Iterator[str]:
    main = main_evaluation(facts)
    names = [name for name in main["figures"] if name in WORDS]
    yield f"| test set, {main['examples']:,} examples | {' | '.join(WORDS[name] for name in names)} |"
    yield "|---" + "|--:" * len(names) + "|"
    tests = [one for one in facts["evaluations"] if one["split"] == "test"]
    for one in sorted(tests, key=lambda one: one is not main):
        called = {
            "best": "best checkpoint",
            "average": "mean of the last checkpoints",
            "last": "last checkpoint",
        }
        name = called[one["checkpoint"]]
        cells = " | ".join(with_interval(one["figures"], figure) for figure in names)
        yield f"| {f'**{name}**' if one is main else name} | {cells} |"
    for baseline, figures in main["baselines"].items():
        cells = " | ".join(shown(name, figures[name]) if name in figures else "" for name in names)
        yield f"| {baseline} | {cells} |"
    yield ""
    if len(tests) > 1:
        yield "Validation chose the checkpoint in bold."
    mistakes = [note for note in main["notes"] if " taken for " in note]
    notes = [note for note in main["notes"] if note not in mistakes]
    notes = [f"`{note}`" if note.startswith("sacrebleu ") else note for note in notes]
    if mistakes:
        notes.append(f"the commonest mistakes: {', '.join(mistakes)}")
    if section.application == "speech" and "accuracy" in names:
        tested = facts["data"]["test"]
        notes.insert(0, f"accuracy is of {tested:,} single recordings, token error of strings of them")
    yield "In brackets 95 % intervals of 1,000 bootstrap samples of the test set."
    if any(
        f"{name}_low" in one["figures"] and _is_flat(one["figures"], name) for one in tests for name in names
    ):
        yield (
            "Where all examples are right, so is every sample of them: without a mistake in n one can say, "
            "with 95 % confidence, that less than 3/n of all would be wrong (the rule of three)."
        )
    yield f"{_capital('; '.join(notes))}."
    yield ""
    yield " ".join(_verdicts(section, facts, main["figures"]))


def _is_flat(figures: Mapping[str, float], name: str) -> bool:
    return figures[f"{name}_low"] == figures[f"{name}_high"]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _verdicts(section: Section, facts: Mapping[str, Any], figures: Mapping[str, float]) -> Iterator[str]:
    if not section.targets:
        return
    yield f"**{_capital(verdict(section, facts))}.**"
    for target in section.targets:
        value, name = figures[target.figure], WORDS[target.figure]
        what = f"{'below ' if target.below else ''}{goal(target)}"
        fine = target.reached(value)
        yield f"{_capital(name)} {shown(target.figure, value)}, asked for {what}: {_yes(fine)}."
        ends = [figures.get(f"{target.figure}_{end}") for end in ("low", "high")]
        if fine and any(end is not None and not target.reached(end) for end in ends):
            yield "The interval reaches to the other side: a test set of this size can't tell for sure."
    minutes = facts["seconds"] / 60
    yield f"{minutes:.0f} of {section.minutes} minutes: {_yes(minutes <= section.minutes)}."
    if section.parameters:
        fine = facts["parameters"] < section.parameters
        yield f"{facts['parameters']:,} parameters, fewer than {section.parameters:,}: {_yes(fine)}."


def _yes(fine: bool) -> str:
    return "yes" if fine else "no"


def _published(section: Section) -> list[str]:
    if not section.published:
        return []
    rows = [
        f"- {one.what}: {one.value} ([source]({one.source})). {_capital(one.differs)}."
        for one in section.published
    ]
    return ["", "Published by others, and what is different there:", "", *rows]


def _outputs(facts: Mapping[str, Any]) -> Iterator[str]:
    outputs = facts["outputs"]
    yield (
        f"**Five outputs**, chosen {outputs['rule']}."
        if outputs["rule"].startswith("by ")
        else (f"**Five outputs.** {_capital(outputs['rule'])}.")
    )
    yield ""
    yield f"| | input | output | right | {outputs['score']} |"
    yield "|---|---|---|---|--:|"
    for row in outputs["rows"]:
        cells = [_cell(row[name]) for name in ("input", "output", "reference")]
        score = f"{row['score']:.2f}" if abs(row["score"]) <= 1 else f"{row['score']:.0f}"
        yield f"| {row['which']} | {' | '.join(cells)} | {score} |"


def _cell(text: str) -> str:
    """Any text in a cell of a table, read as it is."""
    if len(text) > LONGEST:
        text = text[:LONGEST].rsplit(" ", 1)[0] + " ..."
    entities = {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        "|": "&#124;",
        "[": "&#91;",
        "]": "&#93;",
        "`": "&#96;",
    }
    entities |= {"*": "&#42;", "_": "&#95;", "\\": "&#92;", "\n": "<br>"}
    return "".join(entities.get(letter, letter) for letter in text) or "(nothing)"


def _heads(section: Section, facts: Mapping[str, Any]) -> Iterator[str]:
    heads = [Head(**one) for one in facts["heads"]]
    yield (
        f"**What the heads do**, on {facts['observed']:,} inputs, the first of the test (layer.head, from 0):"
    )
    for kind in KINDS:
        some = [head for head in heads if head.kind == kind]
        if not some:
            continue
        places = of_heads.places_of(section.application, kind)
        counts = Counter(of_heads.words(head, places) for head in some)
        listed = ", ".join(f"{count} {word}" for word, count in sorted(counts.items(), key=_often))
        yield ""
        yield f"*{_capital(kind)}*, {len(some)} {'head' if len(some) == 1 else 'heads'}: {listed}."
        yield ""
        yield "| which | head | | in a word |"
        yield "|---|---|---|---|"
        for what, value, head in of_heads.extremes(some, places):
            yield f"| {what} | {head.name} | {value} | {of_heads.words(head, places)} |"
    if facts["drawn"]:
        yield ""
        yield f"![Attention of some heads](images/results/{section.name}-heads.svg)"
        yield ""
        yield facts["drawn"]


def _often(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


def missing(names: Sequence[str]) -> list[str]:
    """Names that no section has."""
    known = {section.name for section in SECTIONS}
    return [name for name in names if name not in known]
