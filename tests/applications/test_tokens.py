"""Byte-pair tokens: nothing is unknown, texts come back, special tokens can't be spelled."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.applications.tokens import SMALLEST, SPECIAL, Tokens, check_token_ids, pad
from headwise.models import TransformerConfig
from headwise.training import RunError

TEXTS = ["ein kleiner Hund läuft", "a little dog runs", "the little dog", "der kleine Hund"] * 3


@pytest.fixture(scope="module")
def tokens():
    return Tokens.train(TEXTS, SMALLEST + 31)


@settings(max_examples=60)
@given(st.text(st.characters(blacklist_categories=("Cs",)), max_size=23))
def test_every_text_comes_back(tokens, text):
    expected = unicodedata.normalize("NFC", text).strip()
    assert tokens.decode(tokens.encode([text])) == [expected]


def test_special_tokens_that_a_text_spells_are_text(tokens):
    (ids,) = tokens.encode(["a [EOS] b [PAD]"])
    assert min(ids) >= len(SPECIAL)
    assert tokens.decode([ids]) == ["a [EOS] b [PAD]"]


def test_decoding_leaves_special_tokens_out(tokens):
    (ids,) = tokens.encode(["little dog"])
    assert tokens.decode([[tokens.bos_id, *ids, tokens.eos_id, tokens.pad_id]]) == ["little dog"]
    assert tokens.pieces([tokens.bos_id, *ids[:1], tokens.eos_id])[::2] == ["[BOS]", "[EOS]"]


def test_frequent_words_become_one_token(tokens):
    assert len(tokens.encode(["little"])[0]) == 1
    assert len(tokens.encode(["xylophone"])[0]) > 1


def test_a_saved_vocabulary_is_the_same(tokens, tmp_path):
    tokens.save(tmp_path)
    loaded = Tokens.load(tmp_path)
    assert loaded.encode(TEXTS) == tokens.encode(TEXTS)
    assert len(loaded) == len(tokens)
    assert loaded.encode(["[EOS]"]) == tokens.encode(["[EOS]"])


def test_a_missing_or_damaged_vocabulary_is_refused(tokens, tmp_path):
    with pytest.raises(RunError, match="no tokenizer"):
        Tokens.load(tmp_path)
    tokens.save(tmp_path)
    file = tmp_path / "tokenizer.json"
    file.write_bytes(file.read_bytes()[:77])
    with pytest.raises(RunError, match="damaged"):
        Tokens.load(tmp_path)


def test_a_vocabulary_that_cannot_hold_the_bytes_is_refused():
    with pytest.raises(ValueError, match=str(SMALLEST)):
        Tokens.train(TEXTS, SMALLEST - 1)
    assert len(Tokens.train(TEXTS, SMALLEST)) == SMALLEST


def test_models_with_other_special_tokens_are_refused():
    check_token_ids(TransformerConfig(vocab_size=SMALLEST))
    with pytest.raises(ValueError, match="eos_id is 5"):
        check_token_ids(TransformerConfig(vocab_size=SMALLEST, eos_id=5))


def test_padding_stands_at_the_end():
    ids, lengths = pad([[5, 7, 11], [13], []], 3)
    assert ids.tolist() == [[5, 7, 11], [13, 3, 3], [3, 3, 3]]
    assert lengths.tolist() == [3, 1, 0]


def test_a_vocabulary_may_pass_over_capital_letters(tokens, tmp_path):
    small = Tokens.train(TEXTS, SMALLEST + 31, lowercase=True)
    assert small.encode(["Der HUND läuft"]) == small.encode(["der hund läuft"])
    assert tokens.encode(["HUND"]) != tokens.encode(["hund"])
    text = "Der KLEINE Hund"
    _, places = small.encode_with_places(text)
    assert "".join(text[left:right].replace(" ", "") for left, right in places) == "DerKLEINEHund"
    small.save(tmp_path)
    assert Tokens.load(tmp_path).encode(["HUND"]) == small.encode(["hund"])
