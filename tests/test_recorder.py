"""observe(model, ...): what every head does, and a model that does not notice."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from headwise.kernels.measure import measure
from headwise.masks import Causal
from headwise.multihead import MultiHeadAttention
from headwise.observers import Distance, Entropy, LogSumExp, MaxWeight, TopKeys, Weights
from headwise.positions import Rotary
from headwise.recorder import observe

BATCH, LENGTH, WIDTH, HEADS = 2, 7, 12, 3


class Layer(nn.Module):
    def __init__(self, crossing=False):
        super().__init__()
        self.attention = MultiHeadAttention(WIDTH, HEADS, rotary=Rotary(4), dropout=0.2)
        self.crossing = MultiHeadAttention(WIDTH, HEADS) if crossing else None

    def forward(self, x, memory=None):
        x = x + self.attention(x, mask=Causal())
        return x if self.crossing is None else x + self.crossing(x, memory)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.ModuleList([Layer(), Layer()])
        self.decoder = nn.ModuleList([Layer(crossing=True)])

    def forward(self, x, *, fail=False):
        memory = x
        for layer in self.encoder:
            memory = layer(memory)
        if fail:
            raise RuntimeError("midway")
        return self.decoder[0](x, memory)


NAMES = ["encoder.0.attention", "encoder.1.attention", "decoder.0.attention", "decoder.0.crossing"]


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Model()


@pytest.fixture
def x():
    return torch.randn(BATCH, LENGTH, WIDTH, generator=torch.Generator().manual_seed(1))


def hooks(model):
    return [m.attention_hooks for m in model.modules() if isinstance(m, MultiHeadAttention)]


def unhooked(model):
    return not any(hooks(model)) and not model._forward_hooks and not model._forward_pre_hooks


def test_every_layer_is_seen_by_name_in_call_order(model, x):
    with observe(model, Entropy(), TopKeys(2)) as seen:
        model(x)
    assert list(seen) == seen.layers == NAMES
    assert len(seen) == 4
    for name in NAMES:
        assert seen[name].entropy.shape == (BATCH, HEADS, LENGTH)
        assert seen[name].top_keys.indices.shape == (BATCH, HEADS, LENGTH, 2)
        assert seen[name].row_sum_of == "kernel"
        assert seen[name].row_sum_error < 1e-5
    assert [call.name for call in seen.calls()] == NAMES
    assert unhooked(model)
    assert "encoder.1.attention" in repr(seen)


def test_what_is_seen_is_the_problem_that_was_solved(model, x):
    model.eval()
    solved = []
    layer = model.encoder[0].attention
    layer.attention_hooks.append(lambda problem, lse: solved.append(problem))
    with observe(model, Weights()) as seen:
        model(x)
    layer.attention_hooks.clear()
    found = seen["encoder.0"].weights
    # by hand: projections, rotary, causal softmax
    q, k = (
        layer.rotary(p(x).unflatten(-1, (HEADS, 4)).transpose(1, 2), torch.arange(LENGTH))
        for p in (layer.q_proj, layer.k_proj)
    )
    s = (q @ k.mT / 2).masked_fill(~torch.ones(LENGTH, LENGTH).tril().bool(), float("-inf"))
    torch.testing.assert_close(found, s.softmax(-1))
    assert torch.equal(found, measure(solved[0], [Weights()]).weights)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("grad", [True, False])
def test_the_output_and_gradients_are_bitwise_the_same(model, x, training, grad):
    model.train(training)

    def run():
        torch.manual_seed(5)
        model.zero_grad()
        with torch.set_grad_enabled(grad):
            y = model(x)
        if grad:
            y.square().sum().backward()
        return [y, *(p.grad for p in model.parameters() if grad)]

    plain = run()
    with observe(model, Weights(), Entropy(), Distance(), MaxWeight(), LogSumExp()):
        observed = run()
    assert all(torch.equal(a, b) for a, b in zip(plain, observed, strict=True))


def test_dropout_is_not_seen(model, x):
    with observe(model.train(), Weights()) as seen:
        model(x)
    torch.testing.assert_close(seen["encoder.0"].weights.sum(-1), torch.ones(BATCH, HEADS, LENGTH))


def test_last_and_all(model, x):
    with observe(model, Entropy()) as last, observe(model, Entropy(), keep="all") as every:
        model(x)
        model(2 * x)
    assert len(last.calls("encoder.0.attention")) == 1
    first, second = every.calls("encoder.0.attention")
    assert torch.equal(last["encoder.0"].entropy, second.entropy)
    assert not torch.equal(first.entropy, second.entropy)
    assert [call.name for call in every.calls()] == NAMES * 2


def test_parts_called_by_themselves(model, x):
    with observe(model, Entropy()) as seen:
        model.encoder[1](x)
        model.encoder[1](2 * x)
    assert list(seen) == ["encoder.1.attention"]
    assert len(seen.calls("encoder.1")) == 1
    with pytest.raises(KeyError, match=r"encoder.0.attention.*has not run"):
        seen["encoder.0"]


class Shared(nn.Module):
    """As in ALBERT: the same module at every place (each call counts)."""

    def __init__(self, times=3):
        super().__init__()
        layer = Layer()
        self.layers = nn.ModuleList([layer] * times)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def test_a_shared_module_keeps_each_of_its_calls(x):
    model = Shared().eval()
    with observe(model, Entropy()) as seen:
        model(x)
        model(x)
    once = seen.calls("layers.0.attention")
    assert len(once) == 3  # the last forward pass alone
    assert seen.layers == ["layers.0.attention"]
    assert all(a is b for a, b in zip(once, seen.calls("layers.2"), strict=True))
    y, alone = x, []
    with torch.no_grad():  # as recorded, so that one way computes both
        for layer in model.layers:
            alone.append(layer.attention(y, mask=Causal(), observe=[Entropy()])[1].entropy)
            y = layer(y)
    assert all(torch.equal(a.entropy, b) for a, b in zip(once, alone, strict=True))


def test_an_attention_layer_alone(x):
    layer = MultiHeadAttention(WIDTH, HEADS)
    with observe(layer, Entropy()) as seen:
        layer(x)
    assert seen[""].entropy.shape == (BATCH, HEADS, LENGTH)


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        (["encoder.1"], NAMES[1:2]),
        (["decoder.*"], NAMES[2:]),
        ("decoder.0.crossing", NAMES[3:]),
        ([0, -1], [NAMES[0], NAMES[3]]),
        (-1, [NAMES[3]]),
        (["encoder", -1], [*NAMES[:2], NAMES[3]]),
    ],
)
def test_chosen_layers(model, x, layers, expected):
    with observe(model, Entropy(), layers=layers) as seen:
        assert sum(map(len, hooks(model))) == len(expected)
        model(x)
    assert list(seen) == expected


def test_an_exception_restores_everything(model, x):
    with pytest.raises(RuntimeError, match="midway"), observe(model, Entropy()) as seen:
        model(x, fail=True)
    assert unhooked(model)
    assert list(seen) == NAMES[:2]  # what had run is there
    with observe(model, Entropy()) as seen:
        with pytest.raises(RuntimeError, match="midway"):
            model(x, fail=True)
        model(x)
    assert list(seen) == NAMES
    assert len(seen.calls("encoder.0")) == 1


def test_nested_and_interleaved(model, x):
    other = lambda problem, lse: None  # noqa: E731
    model.encoder[0].attention.attention_hooks.append(other)
    outer, inner = observe(model, Entropy()), observe(model, Distance(), layers=["encoder.0"])
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(RuntimeError, match="already in use"):
        outer.__enter__()
    model(x)
    outer.__exit__(None, None, None)  # not the one opened last
    model(x)
    inner.__exit__(None, None, None)
    assert model.encoder[0].attention.attention_hooks == [other]
    model.encoder[0].attention.attention_hooks.clear()
    assert unhooked(model)
    assert list(outer["encoder.0"]) == ["entropy"]
    assert list(inner["encoder.0"]) == ["distance"]
    assert list(inner) == NAMES[:1]


def test_gradients_reach_the_weights_only_when_asked_for(model, x):
    with observe(model, Entropy()) as seen:
        model(x)
    assert not seen["encoder.0"].entropy.requires_grad
    with observe(model, Entropy(), detach=False) as seen:
        model(x)
    seen["encoder.0"].entropy.mean().backward()
    assert model.encoder[0].attention.q_proj.weight.grad.abs().sum() > 0
    assert model.encoder[0].attention.v_proj.weight.grad is None


def test_nothing_is_kept_but_results(model):
    x = torch.randn(BATCH, LENGTH, WIDTH)
    kept = []

    def note(problem, lse):
        kept.extend(weakref.ref(t) for t in (problem, problem.q, problem.k, problem.v))

    for layer_hooks in hooks(model):
        layer_hooks.append(note)
    with observe(model, Weights(), Entropy(), LogSumExp(), MaxWeight()) as seen:
        with torch.no_grad():
            model(x)
        gc.collect()
        assert [ref() for ref in kept] == [None] * 16
    assert len(seen) == 4


def test_a_recording_does_not_keep_the_model_alive(x):
    model = Model()
    with observe(model, Entropy()) as seen:
        model(x)
    again = observe(nn.Sequential(model), Entropy())  # nobody but the recording holds this one
    with again:
        model(x)
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None
    assert list(seen) == NAMES
    assert len(again) == len(NAMES)
    with pytest.raises(RuntimeError, match="is gone"), seen:
        pass


@pytest.mark.parametrize("detach", [True, False])
def test_copies_made_meanwhile_are_not_watched(model, x, detach):
    saved, model = io.BytesIO(), model.eval()
    with observe(model, Entropy(), keep="all", detach=detach) as seen:
        model(x)
        copied = copy.deepcopy(model)
        torch.save(model, saved)
        copied(x)
    loaded = torch.load(io.BytesIO(saved.getvalue()), weights_only=False)
    torch.testing.assert_close(loaded(x), model(x))
    copied(x)
    assert [call.name for call in seen.calls()] == NAMES


def test_a_recording_is_copied_and_saved_without_the_model(model, x):
    with observe(model, Entropy()) as seen:
        model(x)
    for other in (copy.deepcopy(seen), pickle.loads(pickle.dumps(seen))):
        assert list(other) == NAMES
        assert torch.equal(other[NAMES[1]].entropy, seen[NAMES[1]].entropy)
    assert b"Linear" not in pickle.dumps(seen)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_computes_again_but_is_one_call(x, reentrant):
    layer, x = MultiHeadAttention(WIDTH, 2), x.requires_grad_()
    with observe(layer, Entropy(), keep="all") as seen:
        checkpoint(layer, x, use_reentrant=reentrant).sum().backward()
    assert len(seen.calls()) == 1


def test_a_hook_may_go_away_while_hooks_are_called(x):
    """A hook that is taken away while another thread calls them must not hide the next one."""
    layer = MultiHeadAttention(WIDTH, 2)

    def first(problem, lse):
        layer.attention_hooks.remove(first)

    layer.attention_hooks.append(first)
    with observe(layer, Entropy()) as seen:
        layer(x)
    assert len(seen) == 1


def test_unknown_names_are_answered_with_near_ones(model, x):
    with observe(model, Entropy()) as seen:
        model(x)
    with pytest.raises(KeyError, match=r"did you mean .*encoder\.1\.attention"):
        seen["encoder.1.atention"]
    with pytest.raises(KeyError, match=r"holds several layers.*decoder\.0\.attention.*decoder\.0\.crossing"):
        seen["decoder.0"]
    with pytest.raises(KeyError, match=r"watched: 'encoder\.0\.attention'"):
        seen["z"]
    assert "encoder.0" in seen
    assert "decoder.0" not in seen
    assert 3 not in seen


def test_models_without_attention_of_ours():
    with pytest.raises(ValueError, match=r"Linear holds no headwise.MultiHeadAttention"):
        observe(nn.Linear(2, 3), Entropy())
    theirs = nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 3, batch_first=True), 2)
    with pytest.raises(ValueError, match=r"2 x torch.nn.MultiheadAttention.*replace_torch_attention"):
        observe(theirs, Entropy())

    class OddAttention(nn.Module):
        pass

    with pytest.raises(ValueError, match="1 x OddAttention"):
        observe(nn.Sequential(OddAttention()), Entropy())


def test_mistakes(model):
    with pytest.raises(TypeError, match="needs an observer"):
        observe(model)
    with pytest.raises(TypeError, match=r"write Entropy\(\)"):
        observe(model, Entropy)
    with pytest.raises(TypeError, match=r"torch.nn.Module first, got Entropy"):
        observe(Entropy(), model)
    with pytest.raises(ValueError, match="'last' or 'all', got 'first'"):
        observe(model, Entropy(), keep="first")
    with pytest.raises(ValueError, match="'middle' matches none"):
        observe(model, Entropy(), layers=["middle"])
    with pytest.raises(ValueError, match="layers is empty"):
        observe(model, Entropy(), layers=[])
    for wrong in (1.5, True, None):
        with pytest.raises(TypeError, match="names and numbers, got"):
            observe(model, Entropy(), layers=[wrong])
    with pytest.raises(ValueError, match="number 4, but there are 4"):
        observe(model, Entropy(), layers=[4])
    assert unhooked(model)
