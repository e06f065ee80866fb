"""Flashcards for Anki, read by its own importer: what changed is updated, nothing is doubled, no schedule is
lost."""

import json
import re
import sqlite3
import zipfile
from datetime import UTC, datetime, timedelta

import genanki
import pytest
from small_guide import DECK, GUIDE, small_guide, store_formulas, write_guide

from headwise.cli.study_anki import write as write_for_anki
from headwise.study import anki as exported
from headwise.study.anki import AnkiError, write_package
from headwise.study.content import Guide, GuideError, load_guide
from headwise.study.publishing import publish_guide

FIRST = datetime(2026, 11, 30, 9, 30, tzinfo=UTC)
REWORDED = DECK.replace("The width of a head.", "How wide each head is.")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "small"


def publish(folder, when=FIRST, note="It goes on", **texts) -> Guide:
    """Change the guide, publish it at a time, and read it again."""
    if texts or not folder.is_dir():
        write_guide(folder, **texts)
    store_formulas(folder)
    publish_guide(load_guide(folder), note, when)
    return load_guide(folder)


def package(guide, name="cards.apkg"):
    file = guide.folder.parent / name
    write_package(guide, file)
    return file


def fields_of(file):
    """Every field of every note, straight from the package."""
    with zipfile.ZipFile(file) as archive:
        raw = file.with_suffix(".anki2")
        raw.write_bytes(archive.read("collection.anki2"))
    connection = sqlite3.connect(raw)
    rows = [row[0].split("\x1f") for row in connection.execute("SELECT flds FROM notes ORDER BY id")]
    connection.close()
    return rows


# kerrickstaley/genanki#157
def test_three_imports(folder, anki):
    first = publish(folder)
    assert anki.read(package(first)) == (2, 0, 0)
    assert anki.read(package(first)) == (0, 0, 2)  # the same again: nothing is doubled
    second = publish(folder, FIRST + timedelta(days=1), deck=REWORDED)
    assert anki.read(package(second)) == (0, 2, 0)
    assert "How wide each head is" in anki.notes()["card-one"]["Back"]
    third = publish(folder, FIRST + timedelta(days=2), deck=DECK)  # edited back
    assert anki.read(package(third)) == (0, 2, 0)
    assert "The width of a head" in anki.notes()["card-one"]["Back"]
    assert len(anki.notes()) == 2


# 2anki/2anki.net#4346
def test_a_reworded_card_keeps_its_schedule(folder, anki):
    anki.read(package(publish(folder)))
    card = anki.card("card-one")
    card.type, card.queue, card.due, card.ivl = 2, 2, 40, 31
    anki.col.update_card(card)
    assert anki.read(package(publish(folder, FIRST + timedelta(days=1), deck=REWORDED))) == (0, 2, 0)
    after = anki.card("card-one")
    assert (after.id, after.due, after.ivl, after.type) == (card.id, 40, 31, 2)
    assert "How wide each head is" in anki.notes()["card-one"]["Back"]


# kerrickstaley/genanki#61
def test_the_same_card_in_two_guides_is_two_notes(folder, anki, tmp_path):
    other = tmp_path / "other"
    anki.read(package(publish(folder)))
    guide = publish(other, guide=GUIDE.replace('id = "small"', 'id = "other"'))
    assert anki.read(package(guide, "other.apkg")) == (2, 0, 0)
    assert len(anki.col.find_notes("")) == 4


# ankidroid/Anki-Android#6968
def test_our_tags_have_one_prefix(folder, anki):
    anki.read(package(publish(folder)))
    tags = {tag for note in anki.notes().values() for tag in note.tags}
    assert tags == {"headwise::small::deck"}


# 2anki/2anki.net#2663
def test_no_field_holds_a_dollar(folder, tmp_path):
    deck = DECK.replace("The width of a head.", r"It costs \\$5, and $d_k$ is 64.")
    rows = fields_of(package(publish(folder, deck=deck)))
    assert all("$" not in field for row in rows for field in row)
    back = rows[0][1]
    assert r"\(d_k\)" in back
    assert "&#36;5" in back


# reuseman/flashcards-obsidian#156, ankitects/anki#5434
@pytest.mark.parametrize(
    "tex",
    [
        r"d_{\\text{model}}",
        r"\\frac{1}{\\sqrt{d_{k}}}",
        r"{{a}}",
        r"a::b",
        r"\\mathbb{R}^{d_{\\text{model}}}",
    ],
)
def test_a_gap_with_braces_is_rendered_by_anki(folder, anki, tex):
    deck = DECK.replace(r"[[$\\sqrt{d_k}$]]", f"[[${tex}$]] and [[more]]")
    assert deck != DECK
    anki.read(package(publish(folder, deck=deck)))
    card = anki.card("card-two")
    question, answer = card.question(), card.answer()
    plain = tex.replace("\\\\", "\\")
    assert "[...]" in question
    assert plain.replace(" ", "") not in re.sub(r"\s|<[^>]*>", "", question).replace("&#58;", ":")
    shown = re.sub(r"<[^>]*>|\s", "", answer).replace("&#58;", ":")
    assert plain.replace(" ", "") in shown
    assert "{{c1" not in answer
    assert r"\(" in answer
    assert len(anki.notes()["card-two"].cards()) == 1


def test_front_back_why_and_sources_are_shown(folder, anki):
    anki.read(package(publish(folder)))
    card = anki.card("card-one")
    assert r"\(d_k\)" in card.question()
    answer = card.answer()
    for part in ("The width of a head", "It is divided by", "Section 3, paragraph 1"):
        assert part in answer
    assert 'href="https://arxiv.org/html/1706.03762v7#S3.p1"' in answer
    assert anki.notes()["card-one"]["SourceURL"] == "https://arxiv.org/html/1706.03762v7#S3.p1"
    assert anki.col.decks.name(card.current_deck_id()) == "A Paper (headwise)"  # Anki gives its own ids


def test_text_that_looks_like_markup_is_text(folder, anki):
    deck = DECK.replace("The width of a head.", "a < b & <script>alert(1)</script> c > d")
    anki.read(package(publish(folder, deck=deck)))
    answer = anki.card("card-one").answer()
    assert "<script>" not in answer
    assert "a &lt; b &amp; &lt;script&gt;" in answer


def test_the_same_version_gives_the_same_bytes(folder):
    guide = publish(folder)
    first = package(guide, "one.apkg").read_bytes()
    assert package(load_guide(folder), "two.apkg").read_bytes() == first
    with zipfile.ZipFile(folder.parent / "one.apkg") as archive:
        assert {entry.date_time for entry in archive.infolist()} == {FIRST.timetuple()[:6]}
        assert archive.namelist() == ["collection.anki2", "media"]


def test_notes_have_the_time_at_which_the_version_was_published(folder, anki):
    anki.read(package(publish(folder)))
    assert {note.mod for note in anki.notes().values()} == {int(FIRST.timestamp())}


def test_a_guide_that_is_not_published_yet_is_updated_by_its_first_version(folder, anki, capsys):
    written = write_package(small_guide(folder), folder.parent / "draft.apkg")
    assert (written.cards, written.retired, written.version) == (2, 0, None)
    assert anki.read(folder.parent / "draft.apkg") == (2, 0, 0)
    write_for_anki(folder, folder.parent / "told.apkg")
    said = capsys.readouterr().out
    assert "2 cards, of the guide as it stands" in said
    assert f'headwise study publish {folder} --note "What changed", then this again' in said
    assert anki.read(package(publish(folder, deck=REWORDED))) == (0, 2, 0)


RETIRED = "[[cards]]" + DECK.split("[[cards]]")[2]
SHORTER = "[[cards]]".join(DECK.split("[[cards]]")[:2])


def test_a_card_that_was_taken_out_is_retired_not_forgotten(folder, anki):
    anki.read(package(publish(folder)))
    (folder / "retired.toml").write_text(RETIRED)
    guide = publish(folder, FIRST + timedelta(days=1), deck=SHORTER)
    written = write_package(guide, folder.parent / "later.apkg")
    assert (written.cards, written.retired) == (2, 1)
    assert anki.read(folder.parent / "later.apkg") == (0, 2, 0)
    assert anki.notes()["card-two"].tags == ["headwise::retired"]
    assert anki.notes()["card-one"].tags == ["headwise::small::deck"]


def test_a_card_that_vanished_is_told_before_anything_is_written(folder):
    publish(folder)
    guide = publish(folder, FIRST + timedelta(days=1), deck=SHORTER)
    with pytest.raises(GuideError, match=r"'card-two' of version 1 is gone.*retired\.toml"):
        write_package(guide, folder.parent / "later.apkg")
    assert not (folder.parent / "later.apkg").exists()


def test_a_card_is_asked_or_retired(folder):
    guide = publish(folder)
    (folder / "retired.toml").write_text("\n\n" + RETIRED)
    with pytest.raises(GuideError, match=r"retired\.toml:3: .*in a deck and retired"):
        write_package(guide, folder.parent / "later.apkg")
    (folder / "retired.toml").write_text("[[cards]]\nid = 5\n")
    with pytest.raises(GuideError, match=r"retired\.toml:2"):
        write_package(guide, folder.parent / "later.apkg")


def test_what_must_never_change_is_what_it_was_on_the_first_day(folder):
    # Learners' collections know cards, note types and decks by these.
    assert (exported.BASIC_ID, exported.CLOZE_ID) == (1706037620, 1706037621)
    assert exported.FIELDS == ("Front", "Back", "Why", "Source", "SourceURL", "Id", "Extra1", "Extra2")
    assert exported.guid("small", "card-one") == genanki.guid_for("headwise", "small", "card-one")
    assert exported.deck_id("small") == exported.deck_id("small") != exported.deck_id("other")
    assert len(str(exported.deck_id("small"))) == 13
    file = package(publish(folder))
    with zipfile.ZipFile(file) as archive:
        raw = folder.parent / "raw.anki2"
        raw.write_bytes(archive.read("collection.anki2"))
    connection = sqlite3.connect(raw)
    models = json.loads(connection.execute("SELECT models FROM col").fetchone()[0])
    connection.close()
    for model in models.values():
        assert tuple(field["name"] for field in model["flds"]) == exported.FIELDS
        assert ".nightMode" in model["css"]


def test_cards_come_in_teaching_order(folder, anki):
    anki.read(package(publish(folder)))
    assert anki.card("card-one").due < anki.card("card-two").due


def test_a_guide_without_cards_and_a_folder_that_is_not_there_are_told(folder, tmp_path):
    guide = publish(folder)
    with pytest.raises(AnkiError, match="can't be written"):
        write_package(guide, tmp_path / "nowhere" / "cards.apkg")
    empty = {name: one for name, one in guide.activities.items() if name != "deck"}
    without = Guide(
        **{**{name: getattr(guide, name) for name in guide.__struct_fields__}, "activities": empty}
    )
    with pytest.raises(AnkiError, match="no flashcards"):
        write_package(without, tmp_path / "cards.apkg")
