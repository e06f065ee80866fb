"""What is said of each head equals what Hugging Face's attention matrices say."""

import math

import pytest
import torch

from headwise.cli import look as looking
from headwise.cli.errors import UserError
from headwise.cli.look import is_punctuation, look, open_model
from headwise.cli.windows import read
from headwise.models.bert_weights import find_bert


@pytest.fixture(scope="module")
def peer():
    from transformers import AutoModel

    return AutoModel.from_pretrained(find_bert("minilm"), attn_implementation="eager").eval()


def matrices(peer, ids):
    """[layers, heads, n, n]"""
    with torch.no_grad():
        found = peer(input_ids=torch.tensor([ids]), output_attentions=True).attentions
    return torch.cat(list(found)).double()


def test_weights_map_and_strongest_keys_equal_those_of_hugging_face(seen, peer):
    dense = matrices(peer, seen.reading.ids)
    n = len(seen.reading.ids)
    torch.testing.assert_close(seen.weights.double(), dense, atol=2e-6, rtol=1e-4)
    top = dense.topk(seen.top_keys.shape[-1]).values
    torch.testing.assert_close(seen.top_weights.double(), top, atol=2e-6, rtol=1e-4)
    torch.testing.assert_close(dense.gather(-1, seen.top_keys), top, atol=2e-6, rtol=1e-4)
    cells = seen.map.shape[-1]
    pool = torch.zeros(cells, n, dtype=torch.float64)
    pool[torch.arange(n) * cells // n, torch.arange(n)] = 1
    pooled = (pool / pool.sum(1, keepdim=True)) @ dense @ pool.T
    torch.testing.assert_close(seen.map.double(), pooled, atol=1e-6, rtol=1e-4)
    assert seen.row_sum_error < 1e-5


def test_every_share_equals_the_one_from_the_dense_matrices(seen, peer):
    dense = matrices(peer, seen.reading.ids)
    tokens, n = seen.reading.tokens, len(seen.reading.tokens)
    words = [place for place in range(n) if tokens[place] not in ("[CLS]", "[SEP]")]
    marks = [place for place in words if tokens[place] in set('.,;?"')]
    assert marks
    copies = {q: [k for k in range(n) if k != q and tokens[k] == tokens[q]] for q in words}
    repeated = [q for q in words if copies[q]]
    for facts in seen.facts:
        weights = dense[facts.layer, facts.head]
        # the neighbours of the outer two words are special tokens, which are no neighbours
        expected = {
            "previous": sum(weights[q, q - 1] for q in words[1:]) / (len(words) - 1),
            "next": sum(weights[q, q + 1] for q in words[:-1]) / (len(words) - 1),
            "itself": sum(weights[q, q] for q in words) / len(words),
            "nearby": sum(weights[q, max(q - 2, 1) : min(q + 3, n - 1)].sum() for q in words) / len(words),
            "same": sum(weights[q, copies[q]].sum() for q in repeated) / len(repeated),
            "first": weights[words, 0].mean(),
            "separator": weights[words, n - 1].mean(),
            "punctuation": weights[words][:, marks].sum(1).mean(),
        }
        for kind, share in expected.items():
            assert facts.shares[kind] == pytest.approx(float(share), abs=1e-5), (
                facts.layer,
                facts.head,
                kind,
            )
        rows = weights[words]
        bits = -(rows * rows.clamp_min(1e-300).log2()).sum(1).mean()
        assert facts.entropy == pytest.approx(float(bits), abs=1e-3)
        assert facts.evenness == pytest.approx(float(bits) / math.log2(n), abs=1e-3)
        apart = (torch.arange(n)[:, None] - torch.arange(n)).abs()
        assert facts.distance == pytest.approx(float((weights * apart)[words].sum(1).mean()), abs=1e-3)
        inner = weights[words][:, words]
        assert facts.strongest.weight == pytest.approx(float(inner.max()), abs=1e-5)
        assert float(weights[facts.strongest.query, facts.strongest.key]) == pytest.approx(
            float(inner.max()), abs=1e-5
        )


def test_even_shares_are_those_of_a_head_that_attends_evenly(seen):
    n = len(seen.reading.tokens)
    assert seen.even["first"] == pytest.approx(1 / n)
    assert seen.even["previous"] == pytest.approx(1 / n)
    words = n - 2
    assert seen.even["nearby"] == pytest.approx((5 * words - 6) / words / n)
    assert seen.most_bits == pytest.approx(math.log2(n))


def test_the_known_habits_of_minilm_are_named(seen):
    assert seen.of(0, 2).verdict.kind == "previous"
    assert seen.of(1, 8).verdict.kind == "next"
    assert seen.of(2, 9).verdict.kind == "same"
    assert seen.of(1, 11).verdict.kind == "first"
    assert seen.of(0, 7).verdict.kind == "broad"


def test_a_long_text_without_a_stride_is_read_up_to_the_limit(long_seen):
    found = long_seen
    assert found.reading.cut
    assert len(found.reading.tokens) == 512
    assert found.weights is None
    assert found.map.shape == (6, 12, 64, 64)
    torch.testing.assert_close(found.map.sum(-1), torch.ones(6, 12, 64), atol=1e-4, rtol=0)


@pytest.fixture(scope="module")
def windowed(minilm, sample):
    """The sample text read in windows of 42 tokens, as a longer one is in windows of 512."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            looking, "read", lambda ids, tokens, limit, stride: read(ids, tokens, limit=42, stride=stride)
        )
        return look(minilm, "all-MiniLM-L6-v2", sample, stride=13)


def test_with_a_stride_each_row_is_the_one_of_its_window(windowed, peer):
    reading = windowed.reading
    assert not reading.cut
    assert len(reading.windows) == 6
    expected = torch.zeros(6, 12, len(reading.ids), len(reading.ids), dtype=torch.float64)
    for window in reading.windows:
        dense = matrices(peer, [reading.ids[place] for place in window.places])
        rows, places = torch.tensor(window.rows), torch.tensor(window.places)
        expected[:, :, places[rows][:, None], places] = dense[:, :, rows]
    torch.testing.assert_close(windowed.weights.double(), expected, atol=5e-6, rtol=1e-3)
    torch.testing.assert_close(
        windowed.weights.sum(-1), torch.ones(6, 12, len(reading.ids)), atol=1e-5, rtol=0
    )
    top = expected.topk(windowed.top_keys.shape[-1]).values
    torch.testing.assert_close(windowed.top_weights.double(), top, atol=5e-6, rtol=1e-3)
    torch.testing.assert_close(expected.gather(-1, windowed.top_keys), top, atol=5e-6, rtol=1e-3)


def test_a_text_of_one_word(minilm):
    found = look(minilm, "all-MiniLM-L6-v2", "hello")
    assert found.reading.tokens == ("[CLS]", "hello", "[SEP]")
    for kind in ("same", "previous", "next", "punctuation"):
        assert all(facts.shares[kind] is None for facts in found.facts)
    assert all(facts.shares["nearby"] == facts.shares["itself"] for facts in found.facts)
    assert all(facts.strongest.query == facts.strongest.key == 1 for facts in found.facts)


def test_in_a_short_text_a_special_token_is_no_neighbour(minilm, peer):
    found = look(minilm, "all-MiniLM-L6-v2", "hello there")
    dense = matrices(peer, found.reading.ids)  # [CLS] hello there [SEP]
    for facts in found.facts:
        weights = dense[facts.layer, facts.head]
        assert facts.shares["previous"] == pytest.approx(float(weights[2, 1]), abs=1e-5)
        assert facts.shares["next"] == pytest.approx(float(weights[1, 2]), abs=1e-5)
        assert facts.shares["nearby"] == pytest.approx(float(weights[1:3, 1:3].sum()) / 2, abs=1e-5)


def test_words_that_the_vocabulary_lacks_are_counted(minilm):
    found = look(minilm, "all-MiniLM-L6-v2", "a \N{EGYPTIAN HIEROGLYPH A001} b \N{T-REX} c")
    assert found.unknown == 2


def test_progress_names_every_window(minilm, long_text):
    calls = []
    look(minilm, "all-MiniLM-L6-v2", long_text, stride=400, progress=lambda *numbers: calls.append(numbers))
    assert calls == [(1, 2), (2, 2)]


@pytest.mark.parametrize("token", [".", ",", "…", "##.", "€", "--"])
def test_punctuation(token):
    assert is_punctuation(token)


@pytest.mark.parametrize("token", ["a", "##s", "3", "", "##", "don't", "中"])
def test_no_punctuation(token):
    assert not is_punctuation(token)


@pytest.mark.parametrize("name", ["bert-large", "no/such/folder", ""])
def test_an_unknown_model_is_refused_with_its_name(name):
    with pytest.raises(UserError, match=f"--model {name}"):
        open_model(name)


def test_a_folder_without_the_files_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"config\.json"):
        open_model(str(tmp_path))
    (tmp_path / "config.json").write_text("{not json")
    with pytest.raises(UserError, match="--model"):
        open_model(str(tmp_path))
