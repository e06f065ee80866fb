"""The flashcards of a guide as a package for Anki, which later packages update instead of doubling.

What makes that work, each with the thread where it was learnt the hard way:
- A note's guid is made of the guide's and the card's id, never of its text (genanki#61).
- Ids of the note types and of the deck never change, and neither does the list of fields: Anki skips updates
  in the import that changes a note type. So there are spare fields from the start.
- Notes carry the time at which the guide's version was published: Anki takes an edit only if it is later
  (genanki#157).
- Anki never removes a card because a package lacks it. Cards that were taken out of a guide are kept in its
  retired.toml and come with the tag headwise::retired.
- Formulas stand between \\( \\), never $ (2anki.net#2663); }} within a cloze would end it, and is written
  with a space (flashcards-obsidian#156).
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import sqlite3
import tempfile
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import genanki
import msgspec
from markupsafe import Markup, escape

from headwise.study import versions
from headwise.study.content import Card, Deck, Guide, GuideError
from headwise.study.content.cards import CLOZE
from headwise.study.content.toml_file import TomlFile
from headwise.study.maths import TexMaths
from headwise.study.render.maker import place_name
from headwise.study.render.markdown import to_html

PROJECT = "headwise"
RETIRED_FILE = "retired.toml"
RETIRED_TAG = f"{PROJECT}::retired"
FIELDS = ("Front", "Back", "Why", "Source", "SourceURL", "Id", "Extra1", "Extra2")
"""Frozen: a field added later would cost every learner one update. The last two wait for what may come."""

BASIC_ID, CLOZE_ID = 1706037620, 1706037621
UNPUBLISHED = datetime(2020, 1, 1, tzinfo=UTC)
"""The time of a guide that was never published: the first version is later."""

_SOURCE = "{{#Source}}<div class=source>{{Source}}</div>{{/Source}}"
_WHY = "{{#Why}}<div class=why>{{Why}}</div>{{/Why}}"
_STYLE = """.card { font-family: Georgia, serif; font-size: 20px; line-height: 1.4; text-align: left;
  color: #1d1d1f; background: #fdfcf9; max-width: 36em; margin: 0 auto; }
.why { margin-top: 1em; font-size: 0.9em; }
.source { margin-top: 1em; font-size: 0.75em; opacity: 0.8; }
.cloze { font-weight: bold; color: #0b5394; }
.nightMode.card, .night_mode .card { color: #e8e6e1; background: #1e1f22; }
.nightMode .cloze, .night_mode .cloze { color: #8ab8e6; }
.nightMode a, .night_mode a { color: #8ab8e6; }
"""
_TAG = re.compile(r"[^0-9A-Za-z_-]+")


class AnkiError(Exception):
    """The package can't be written. The message says why."""


class Retired(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """retired.toml: cards that learners may have, and that are asked no more."""

    cards: list[Card] = []


@dataclass(frozen=True)
class Written:
    """What a package holds: how many cards, how many of them retired, and of which published version; None
    for a guide without one."""

    cards: int
    retired: int
    version: int | None


def write_package(guide: Guide, out: Path) -> Written:
    """Write the flashcards of a guide as an .apkg file: the same guide gives the same bytes.

    Raises:
        GuideError: a card can't be shown, or one of a published version is neither in a deck nor retired.
        AnkiError: there are no cards, or the file can't be written.
    """
    decks = [activity for activity in guide.activities.values() if isinstance(activity, Deck)]
    retired = retired_cards(guide)
    if not any(deck.cards for deck in decks):
        raise AnkiError(f"the guide {guide.id!r} has no flashcards")
    _check_none_lost(guide, retired)
    made = genanki.Deck(deck_id(guide.id), f"{guide.paper.title} ({PROJECT})")
    place = itertools.count()
    for deck in decks:
        for card in deck.cards:
            tag = f"{PROJECT}::{_TAG.sub('-', guide.id)}::{_TAG.sub('-', deck.id)}"
            made.add_note(_note(card, guide, deck.file, [tag], next(place)))
    for card in retired:
        made.add_note(_note(card, guide, RETIRED_FILE, [RETIRED_TAG], next(place)))
    published = versions.published(guide.folder)
    when = datetime.fromisoformat(published[-1].published) if published else UNPUBLISHED
    _write(made, when, out)
    return Written(len(made.notes), len(retired), published[-1].number if published else None)


def retired_cards(guide: Guide) -> list[Card]:
    """The cards of retired.toml; none without it.

    Raises:
        GuideError: it can't be read, or a card of it is in a deck too.
    """
    path = guide.folder / RETIRED_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise GuideError(f"this can't be read: {error}", str(path)) from None
    errors: list[GuideError] = []
    found = TomlFile(text, str(path)).convert_with_items(Retired, "cards", Card, errors)
    if errors:
        raise GuideError.of(errors)
    cards = found.cards if found else []
    asked = guide.cards()
    for card in cards:
        if card.id in asked:
            raise GuideError(
                f"the card {card.id!r} is in a deck and retired: keep one of them", str(path), card.line
            )
    return cards


def _check_none_lost(guide: Guide, retired: list[Card]) -> None:
    """Every card of a published version is still there, or retired."""
    known = set(guide.cards()) | {card.id for card in retired}
    decks = {name for name, activity in guide.activities.items() if isinstance(activity, Deck)}
    for number in versions.numbers(guide.folder):
        for deck, ids in versions.places(guide.folder, number).items():
            lost = [card for card in ids if card not in known] if deck in decks else []
            if lost:
                raise GuideError(
                    f"the card {lost[0]!r} of version {number} is gone, and learners who imported it keep "
                    f"it: move it into {RETIRED_FILE}, so that Anki is told",
                    str(guide.folder / RETIRED_FILE),
                )


def deck_id(guide: str) -> int:
    """The id of a guide's deck in Anki, the same for ever."""
    return _number("deck", guide)


def guid(guide: str, card: str) -> str:
    """What Anki knows a card by, the same for ever."""
    return str(genanki.guid_for(PROJECT, guide, card))


def _number(*parts: str) -> int:
    """A number within the range that Anki gives to decks, made of names."""
    digest = hashlib.sha256("\n".join((PROJECT, *parts)).encode()).digest()
    return 1_300_000_000_000 + int.from_bytes(digest[:5], "big")


def _note(card: Card, guide: Guide, file: str, tags: list[str], place: int) -> genanki.Note:
    """A note with one card: all gaps of a cloze are asked at once, as on our pages."""

    def html(text: str) -> Markup:
        return to_html(
            text, guide, maths=TexMaths(), root="", file=str(guide.folder / file), line=card.line, links=False
        )

    cloze = card.kind == "cloze"
    front = _gaps(str(html(card.text))) if cloze else str(html(card.front))
    back = "" if cloze else str(html(card.back))
    sources = [guide.source(anchor) for anchor in card.sources]
    shown = ", ".join(
        f'<a href="{escape(source.url)}">{escape(place_name(source.label or source.id))}</a>'
        if source.url
        else str(escape(place_name(source.label or source.id)))
        for source in sources
    )
    fields = [
        front,
        back,
        str(html(card.why)) if card.why else "",
        shown,
        str(escape(sources[0].url)) if sources else "",
        str(escape(card.id)),
        "",
        "",
    ]
    return genanki.Note(
        model=_cloze_model() if cloze else _basic_model(),
        fields=[_dollarless(field.strip()) for field in fields],
        sort_field=card.id,
        tags=tags,
        guid=guid(guide.id, card.id),
        due=place,
    )


def _gaps(html: str) -> str:
    """[[ ]] as Anki's cloze. Braces and colons inside that would end it are written apart."""

    def gap(found: re.Match[str]) -> str:
        inner = re.sub(r"\}(?=\})", "} ", found[1]).replace("::", ":&#58;")
        return f"{{{{c1::{inner}{' ' if inner.endswith('}') else ''}}}}}"

    return CLOZE.sub(gap, html)


def _dollarless(html: str) -> str:
    """A dollar that is meant as one can't be taken for the sign of a formula."""
    return html.replace("$", "&#36;")


def _basic_model() -> genanki.Model:
    back = f"{{{{FrontSide}}}}<hr id=answer>{{{{Back}}}}{_WHY}{_SOURCE}"
    return _model(BASIC_ID, "headwise: question and answer", "{{Front}}", back, genanki.Model.FRONT_BACK)


def _cloze_model() -> genanki.Model:
    back = f"{{{{cloze:Front}}}}{_WHY}{_SOURCE}"
    return _model(CLOZE_ID, "headwise: gap", "{{cloze:Front}}", back, genanki.Model.CLOZE)


def _model(number: int, name: str, front: str, back: str, kind: int) -> genanki.Model:
    return genanki.Model(
        number,
        name,
        fields=[{"name": field} for field in FIELDS],
        templates=[{"name": "Card", "qfmt": front, "afmt": back}],
        css=_STYLE,
        model_type=kind,
    )


def _write(deck: genanki.Deck, when: datetime, out: Path) -> None:
    """The package, with nothing in it that hangs on the time or place of its making."""
    try:
        with tempfile.TemporaryDirectory(prefix=".anki-", dir=out.resolve().parent) as scratch:
            collection = Path(scratch, "collection.anki2")
            connection = sqlite3.connect(collection)
            try:
                stamp = when.timestamp()
                ids = itertools.count(int(stamp * 1000))
                genanki.Package(deck).write_to_db(connection.cursor(), stamp, ids)
                connection.commit()
            finally:
                connection.close()
            packed = Path(scratch, "cards.apkg")
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
                for name, content in (("collection.anki2", collection.read_bytes()), ("media", b"{}")):
                    entry = zipfile.ZipInfo(name, when.astimezone(UTC).timetuple()[:6])
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    entry.external_attr = 0o644 << 16
                    entry.create_system = 3
                    archive.writestr(entry, content)
            os.replace(packed, out)
    except OSError as error:
        raise AnkiError(f"{out} can't be written: {error.strerror or error}") from error
