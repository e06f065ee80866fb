"""What `headwise see` says of a run's heads against a dense computation in float64."""

import math
import re
from pathlib import Path

import pytest
import torch

from headwise.applications import application_of
from headwise.applications.sound import read_wav
from headwise.applications.speech_model import FIRST_SYMBOL, features_of, hear
from headwise.cli.runs.pictures import picture
from headwise.cli.runs.sounds import sound
from headwise.cli.runs.texts import answer, summary, translation
from headwise.cli.runs.view import Axis
from headwise.multihead import MultiHeadAttention


def opened(tiny_run, name):
    run = tiny_run(name)
    return application_of(run).open(run, "best", print)


def dense(model, run):
    """Weights of every attention of a model while `run` runs, [heads, queries, keys] by name, computed in
    float64 from what goes in, and what `run` returns. For attention without positions of its own."""
    found = {}

    def watch(name):
        def hook(module, arguments, options):
            x = arguments[0]
            memory = arguments[1] if len(arguments) > 1 and arguments[1] is not None else x
            (queries, keys), heads = (x.shape[1], memory.shape[1]), module.num_heads
            q = (x[0].double() @ module.q_proj.weight.double().T).reshape(queries, heads, -1)
            k = (memory[0].double() @ module.k_proj.weight.double().T).reshape(keys, heads, -1)
            if module.q_proj.bias is not None:
                q = q + module.q_proj.bias.double().reshape(heads, -1)
                k = k + module.k_proj.bias.double().reshape(heads, -1)
            scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[-1])
            if "decoder" in name and "self" in name:
                scores = scores.masked_fill(torch.ones(queries, keys).triu(1).bool(), -torch.inf)
            found[name] = scores.softmax(-1)

        return hook

    hooks = [
        module.register_forward_pre_hook(watch(name), with_kwargs=True)
        for name, module in model.named_modules()
        if isinstance(module, MultiHeadAttention)
    ]
    with torch.no_grad():
        returned = run()
    for one in hooks:
        one.remove()
    return found, returned


def check_maps(parts, weights):
    for part in parts:
        if part.key == "rollout":
            continue
        ends, stack = {
            "cross": ("cross_attention", "decoder.layers"),
            "copy": ("copy_attention", ""),
            "encoder": ("self_attention", "encoder.layers"),
            "decoder": ("self_attention", "decoder.layers"),
        }[part.key]
        own = [one for name, one in weights.items() if name.endswith(ends) and stack in name]
        assert len(own) == part.layers
        whole = torch.stack(own)
        torch.testing.assert_close(part.maps[:, :-1].double(), whole, atol=3e-6, rtol=0)
        torch.testing.assert_close(part.maps[:, -1].double(), whole.mean(1), atol=3e-6, rtol=0)
        queries = ~torch.tensor(part.queries.special)
        if not queries.any():  # nothing was written but [EOS]
            queries = ~queries
        entropy = -(whole * whole.clamp(min=1e-300).log2()).sum(-1)[..., queries].mean(-1)
        largest = whole.amax(-1)[..., queries].mean(-1)
        for layer, facts in enumerate(part.facts):
            for head, one in enumerate(facts):
                assert one.entropy == pytest.approx(float(entropy[layer, head]), abs=1e-5)
                assert one.largest == pytest.approx(float(largest[layer, head]), abs=1e-5)
                assert one.strongest.weight == pytest.approx(
                    float(whole[layer, head, one.strongest.query, one.strongest.key]), abs=1e-5
                )


def test_a_translation_has_the_weights_of_a_dense_computation(tiny_run):
    trained = opened(tiny_run, "translation")
    text = "one two one."

    result, parts, notes = translation(trained, text, beam=2)
    assert result.output == trained.translate([text], beam=2)[0]
    assert notes == []
    source = [*trained.tokens.encode([text])[0], trained.tokens.eos_id]
    cross = parts[0]
    before = [trained.tokens.bos_id, *trained.tokens.encode([result.output])[0]]
    assert len(before) == len(cross.queries.labels)
    assert "".join(cross.queries.labels[:-1]) == result.output.replace(" ", "")
    assert cross.queries.labels[-1] == cross.keys.labels[-1] == "[EOS]"
    weights, _ = dense(
        trained.model,
        lambda: trained.model(torch.tensor([source]), torch.tensor([before]), torch.tensor([len(source)])),
    )
    check_maps(parts, weights)


def test_shares_are_those_of_a_dense_computation(tiny_run):
    _, [cross, encoder, decoder], _ = translation(opened(tiny_run, "translation"), "one two one two.", beam=1)
    labels, special = encoder.keys.labels, torch.tensor(encoder.keys.special)
    ordinary = (~special).nonzero().flatten().tolist()
    for layer in range(encoder.layers):
        for head in range(encoder.heads):
            weights, shares = encoder.maps[layer, head], encoder.facts[layer][head].shares
            previous = [float(weights[at, at - 1]) for at in ordinary if at > 0]
            assert shares["previous"] == pytest.approx(sum(previous) / len(previous), abs=1e-6)
            same = [
                sum(float(weights[at, to]) for to in ordinary if to != at and labels[to] == labels[at])
                for at in ordinary
                if labels.count(labels[at]) > 1
            ]
            assert shares["same"] == pytest.approx(sum(same) / len(same), abs=1e-6)
            assert shares["separator"] == pytest.approx(float(weights[:-1, -1].mean()), abs=1e-6)
            near = [sum(float(weights[at, to]) for to in ordinary if abs(at - to) <= 2) for at in ordinary]
            assert shares["nearby"] == pytest.approx(sum(near) / len(near), abs=1e-6)
            assert encoder.facts[layer][head].even["separator"] == pytest.approx(1 / len(labels), abs=1e-6)
    assert all(one.shares["next"] is None for row in decoder.facts for one in row)  # none may look ahead
    assert "previous" not in cross.facts[0][0].shares
    count = len(decoder.queries.labels) - 1  # [BOS] is no query that counts
    most = sum(math.log2(at + 2) for at in range(count)) / count
    assert decoder.facts[0][0].most == pytest.approx(most, abs=1e-5)


def test_an_answer_has_the_weights_of_a_dense_computation(tiny_run):
    trained = opened(tiny_run, "question-answering")
    question, text = "which is it", "not one it is two not six"
    result, parts, notes = answer(trained, question, text)
    assert result.output == trained.answer(question, text) == text[slice(*result.span)]
    assert notes == []
    starts = [share for _, share in result.starts]
    assert starts == sorted(starts, reverse=True)
    assert sum(starts) <= 1 + 1e-6
    labels = parts[0].queries.labels
    assert labels[0] == "[BOS]"
    assert labels[-1] == "[EOS]"
    begins = labels.index("[EOS]")
    assert all(begins < place < len(labels) - 1 for place, _ in (*result.starts, *result.ends))
    weights, _ = dense(trained.model, lambda: trained.answer(question, text))
    check_maps(parts, weights)


def test_an_image_has_the_weights_and_the_rollout_of_a_dense_computation(tiny_run, tiny_inputs):
    trained = opened(tiny_run, "vision")
    [file] = tiny_inputs["vision"]
    result, parts, notes = picture(trained, Path(file), invert=False)
    assert dict(result.probabilities) == pytest.approx(dict(trained.classify(file).probabilities))
    assert notes == []
    assert parts[0].queries.labels == (
        "[class]",
        *(f"{row},{column}" for row in range(4) for column in range(4)),
    )
    weights, _ = dense(trained.model, lambda: trained.classify(file))
    check_maps(parts, weights)
    held = torch.eye(17, dtype=torch.float64)
    for one in weights.values():
        held = (one.mean(0) + torch.eye(17, dtype=torch.float64)) / 2 @ held
    torch.testing.assert_close(parts[1].maps[-1, 0].double(), held, atol=3e-6, rtol=0)
    for head in range(2):  # 0,1 has no patch beside it across the edge, and the class token is none
        shares = parts[0].facts[0][head].shares
        first = weights["encoder.layers.0.self_attention"][head]
        near = 0.0
        for row in range(4):
            for column in range(4):
                beside = [
                    (row, column),
                    (row, column - 1),
                    (row, column + 1),
                    (row - 1, column),
                    (row + 1, column),
                ]
                inside = [1 + 4 * r + c for r, c in beside if 0 <= r < 4 and 0 <= c < 4]
                near += float(first[1 + 4 * row + column, inside].sum())
        assert shares["nearby"] == pytest.approx(near / 16, abs=1e-5)
        apart = torch.cdist(*[torch.cartesian_prod(torch.arange(4.0), torch.arange(4.0)).double()] * 2)
        patches = first[1:, 1:]
        mean = ((patches * apart).sum(1) / patches.sum(1)).mean()
        assert parts[0].facts[0][head].distance == pytest.approx(float(mean), abs=1e-5)


def test_a_sound_has_the_weights_of_a_dense_computation(tiny_run, tiny_inputs):
    trained = opened(tiny_run, "speech")
    [file] = tiny_inputs["speech"]
    result, parts, notes = sound(trained, Path(file), beam=2)
    wave = read_wav(Path(file), rate=trained.rate)
    features, frames = features_of([wave.samples], trained.mel)
    heard = [
        trained.symbols[one - FIRST_SYMBOL]
        for one in hear(trained.model, features, frames)[0]
        if one >= FIRST_SYMBOL  # a model that has learned nothing may also hear [BOS] and [EOS]
    ]
    assert result.output == trained.joined_by.join(heard)
    assert [symbol for _, symbol, _ in result.symbols] == heard
    written = hear(trained.model, features, frames, decoder="attention", beam=2)[0]
    assert len(parts[0].queries.labels) == len(written) + 1
    assert result.seconds == pytest.approx(0.45)
    assert notes == []
    cross, encoder, _ = parts
    assert cross.keys is encoder.keys
    assert encoder.keys.step == pytest.approx(0.04)
    assert encoder.keys.labels[:3] == ("0.00 s", "0.04 s", "0.08 s")

    before = torch.tensor([[1, *written]])
    weights, _ = dense(trained.model, lambda: trained.model(features, frames, before))
    check_maps(parts, weights)


def test_a_summary_says_what_is_cut(tiny_run):
    trained = opened(tiny_run, "summarization")
    text = "Not one.\nIt is four. " + "Not six. " * 9
    result, parts, notes = summary(trained, text, beam=1)
    assert result.output == trained.summarize([text], beam=1)[0]
    assert len(parts[0].keys.labels) == 13
    assert re.fullmatch(r"The text has \d+ tokens, and the run reads the first 13\.", notes[0])
    tokens = trained.tokens
    source = [*tokens.encode([" ".join(text.split())])[0][:12], tokens.eos_id]
    before = [tokens.bos_id, *tokens.encode([result.output])[0]]
    if len(before) == len(parts[0].queries.labels):  # what was written may be spelled in several ways
        ids = torch.tensor([source]), torch.tensor([before]), torch.tensor([len(source)])
        weights, _ = dense(trained.model, lambda: trained.model(*ids))
        check_maps(parts, weights)


def test_cells_of_a_long_axis_name_their_first_and_last_token():
    axis = Axis("long", "text", tuple(map(str, range(300))), (False,) * 300)
    assert axis.cells == 256
    assert axis.cell_labels[0] == "0 … 1"
    named = [label.split(" … ") for label in axis.cell_labels]
    assert [int(one[0]) for one in named][1:] == [int(one[-1]) + 1 for one in named][:-1]
    assert named[-1][-1] == "299"


def test_the_share_of_copying_is_what_the_scores_hold(tiny_run):
    trained = opened(tiny_run, "summarization")
    text = "the quick editor shows text"
    passed = []

    def keep(module, given, found):
        passed.append((given[1], given[2].ids, found))

    hook = trained.model.pointer.register_forward_hook(keep)
    written, parts, _ = summary(trained, text, beam=1)
    hook.remove()
    logits, source, scores = passed[-1]  # of the pass that is watched
    others = [one for one in range(logits.shape[-1]) if one not in source]
    # P(w) = p_gen softmax(logits)_w for every token that the source has not
    p_gen = (scores.double().softmax(-1) / logits.double().softmax(-1))[0, :, others]
    assert len(written.copied) == p_gen.shape[0] == len(parts[1].queries.labels)
    torch.testing.assert_close(1 - p_gen.mean(-1), torch.tensor(written.copied).double(), atol=1e-5, rtol=0)
    assert min(written.copied) > 0
    assert max(written.copied) < 1


def test_translations_have_no_share_of_copying(tiny_run):
    written, _, _ = translation(opened(tiny_run, "translation"), "a dog runs", beam=1)
    assert written.copied == ()
