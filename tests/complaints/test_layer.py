"""Complaints about attention layers: what other libraries' modules got wrong, each with its thread."""

from __future__ import annotations

import copy
import math
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headwise.cache import GrowingCache, StaticCache
from headwise.masks import Causal, KeyLengths
from headwise.multihead import MultiHeadAttention
from headwise.observers import Entropy
from headwise.positions import RelativeBias, Rotary

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "dropout": {"dropout": 0.5},
    "grouped": {"num_kv_heads": 2},
    "rotary": {"rotary": Rotary(8)},
    "biased scores": {"score_bias": RelativeBias(4)},
    "softcap and sinks": {"softcap": 2.0, "sinks": True},
    "gate and norms": {"gate": True, "qk_norm": True},
}
CALLS: dict[str, dict[str, Any]] = {
    "plain": {},
    "observed": {"observe": [Entropy()]},
    "padded": {"mask": Causal() & KeyLengths(torch.tensor([11, 9]))},
    "added scores": {"bias": torch.randn(1, 4, 11, 11)},
    "cached": {"cache": GrowingCache},
    "static": {"cache": lambda: StaticCache(2, 4, 11, 8)},
    "five dimensions": {},
}


def output(layer: MultiHeadAttention, x: Tensor, call: str) -> Tensor:
    options = {"mask": Causal(), **CALLS[call]}
    if "cache" in options:
        options["cache"] = options["cache"]()
    if layer.training:
        options["generator"] = torch.Generator().manual_seed(0)
    y = layer(x[None] if call == "five dimensions" else x, **options)
    y = y[0] if isinstance(y, tuple) else y
    return y[0] if call == "five dimensions" else y


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("call", list(CALLS))
@pytest.mark.parametrize("options", list(OPTIONS))
def test_the_future_never_moves_the_past(options: str, call: str, grad: bool, training: bool) -> None:
    """pytorch#99282, #118972, #172338: is_causal is a hint that nn.MultiheadAttention's evaluation path
    ignores. keras#23038: the causal mask is dropped in silence with dropout, returned scores, or inputs
    of another rank."""
    if call == "static" and (grad or "num_kv_heads" in OPTIONS[options]):
        pytest.skip("a static cache takes no gradients, and this one has four heads")
    torch.manual_seed(0)
    layer = MultiHeadAttention(32, 4, **OPTIONS[options]).train(training)
    x = torch.randn(2, 11, 32)
    with torch.set_grad_enabled(grad):
        before = output(layer, x, call)
        for t in (0, 4, 9):
            changed = x.clone()
            changed[:, t + 1 :] = 100 * torch.randn(2, 10 - t, 32)
            after = output(layer, changed, call)
            torch.testing.assert_close(after[:, : t + 1], before[:, : t + 1], rtol=0, atol=1e-5)
            assert not torch.allclose(after[:, t + 1 :], before[:, t + 1 :])


@pytest.mark.parametrize("kernel", ["auto", "reference"])
def test_training_and_evaluation_are_one_path(kernel: str) -> None:
    """pytorch#97111: with padding, evaluation gave other values (0) and once another length than
    training. And evaluation's own path was slower and took ten times the memory: there is none here."""
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(64, 4, projection_bias=True, kernel=kernel), torch.randn(5, 6, 64)
    mask = KeyLengths(torch.tensor([6, 1, 1, 1, 0]))  # five columns of padding, and an empty text
    want = layer.train()(x, mask=mask)
    assert want.shape == x.shape
    for training in (True, False):
        for grad in (True, False):
            with torch.set_grad_enabled(grad):
                assert torch.equal(layer.train(training)(x, mask=mask), want)
    with torch.inference_mode():
        assert torch.equal(layer(x, mask=mask), want)
    # Padded queries are not special: they attend to the valid keys like every query.
    torch.testing.assert_close(want[1], layer(x[1], x[1, :1]))


def test_all_sizes_are_free() -> None:
    """pytorch#103668, #27623, #120793, #60445; gpt-neox#1434: one head size, one width, padded by hand.

    Padding by hand must not be needed, and must change nothing."""
    torch.manual_seed(0)
    q_in, k_in, v_in, out, d_k, d_v, length, keys = 3, 5, 7, 11, 13, 17, 19, 23
    sizes = {"input_dim": q_in, "memory_dim": k_in, "value_dim": v_in, "output_dim": out}
    layer = MultiHeadAttention(29, 2, d_k=d_k, d_v=d_v, **sizes)
    wide = MultiHeadAttention(29, 2, d_k=d_v, d_v=d_v, scale=d_k**-0.5, **sizes)
    x, memory, values = torch.randn(2, length, q_in), torch.randn(2, keys, k_in), torch.randn(2, keys, v_in)
    y = layer(x, memory, values=values)
    assert y.shape == (2, length, out)
    with torch.no_grad():
        for padded, plain in ((wide.q_proj, layer.q_proj), (wide.k_proj, layer.k_proj)):
            padded.weight.zero_()
            padded.weight.view(2, d_v, -1)[:, :d_k] = plain.weight.view(2, d_k, -1)
        wide.v_proj.weight.copy_(layer.v_proj.weight)
        wide.out_proj.weight.copy_(layer.out_proj.weight)
    torch.testing.assert_close(wide(x, memory, values=values), y)


def test_hooks_fire_once_per_projection() -> None:
    """peft#761, #1324; pytorch#118165, #32764: out_proj's hooks never fired, adapters were bypassed."""
    layer, fired = MultiHeadAttention(12, 3), Counter[str]()
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        getattr(layer, name).register_forward_hook(lambda *_, name=name: fired.update([name]))
    for training in (True, False):
        fired.clear()
        layer.train(training)(torch.randn(2, 5, 12))
        assert fired == Counter(["q_proj", "k_proj", "v_proj", "out_proj"])


class LowRank(nn.Module):
    """An adapter beside a frozen linear."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.down = nn.Linear(linear.in_features, 2, bias=False)
        self.up = nn.Linear(2, linear.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) + self.up(self.down(x))  # type: ignore[no-any-return]


def test_adapters_replace_projections() -> None:
    """LoRA-Torch#3, helical#405: nn.MultiheadAttention reads .weight, so an adapter changed nothing."""
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, 3, rotary=Rotary(4)), torch.randn(2, 5, 12)
    merged = copy.deepcopy(layer)
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        adapter = LowRank(getattr(layer, name))
        setattr(layer, name, adapter)
        with torch.no_grad():
            getattr(merged, name).weight += adapter.up.weight @ adapter.down.weight
    y = layer(x)
    torch.testing.assert_close(y, merged(x))
    y.sum().backward()
    trained = {name for name, p in layer.named_parameters() if p.grad is not None}
    assert trained == {f"{n}_proj.{part}.weight" for n in ("q", "k", "v", "out") for part in ("up", "down")}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_quantisers_reach_every_projection() -> None:
    """pytorch#82443, neural-compressor#1416: dynamic quantisation left the packed projection in float32."""
    if not torch.backends.quantized.supported_engines:
        pytest.skip("this build has no quantised kernels")
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(32, 4).eval(), torch.randn(2, 5, 32)
    small = torch.ao.quantization.quantize_dynamic(layer, {nn.Linear}, dtype=torch.qint8)
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        assert "quantized" in type(getattr(small, name)).__module__
    with torch.no_grad():
        want = layer(x, mask=Causal())
        error = (small(x, mask=Causal()) - want).norm() / want.norm()
    # 8 bits: two quantised products in a row, each within 1 part in 100 or so.
    assert 0 < error < 0.05


def test_initialisation_does_not_depend_on_storage() -> None:
    """pytorch#166378: at width 512, a packed matrix was drawn with std 0.0312, separate ones 0.0442."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(512, 8)
    packed, _ = layer.fused_weight()
    for part in (*packed.chunk(3), layer.q_proj.weight, layer.k_proj.weight, layer.v_proj.weight):
        # Uniform over +-a, a = sqrt(6 / (512 + 512)): std a / sqrt(3) = 0.0442.
        assert part.std().item() == pytest.approx(math.sqrt(2 / 1024), rel=0.01)


# Rotary angles: pytorch#60939, #99012; transformers PR#29285; diffusers#13922. Under autocast or in half
# precision the angle itself was rounded, and far positions lost their phase.


def exact_turn(x: Tensor, positions: Tensor) -> Tensor:
    d = x.shape[-1]
    rates = torch.tensor([10000 ** (-2 * p / d) for p in range(d // 2)], dtype=torch.float64)
    angle = positions.double()[:, None] * rates
    a, b = x.double().chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("autocast", [False, True])
def test_far_positions_keep_their_phase(dtype: torch.dtype, autocast: bool) -> None:
    torch.manual_seed(0)
    x, positions = torch.randn(2, 3, 64).to(dtype), torch.tensor([0, 4095, 65535])
    rotary = Rotary(64).to(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        turned = rotary(x, positions)
    assert turned.dtype == dtype
    error = (turned.double() - exact_turn(x, positions)).abs().max().item()
    # Nothing but the rounding of the result: half a unit in the last place of numbers below 8.
    assert error <= 8 * torch.finfo(dtype).eps / 2 + 1e-6


def test_scores_at_far_positions_under_autocast() -> None:
    """The whole layer: a text that starts at 65,000 gives what the same text at 0 gives."""
    torch.manual_seed(0)
    layer, x, at = MultiHeadAttention(64, 2, rotary=Rotary(32)), torch.randn(2, 11, 64), torch.arange(11)
    near = layer(x, mask=Causal(), positions=at)
    torch.testing.assert_close(layer(x, mask=Causal(), positions=at + 65000), near, rtol=0, atol=1e-5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = layer(x, mask=Causal(), positions=at)
        far = layer(x, mask=Causal(), positions=at + 65000)
    torch.testing.assert_close(low.float(), near, rtol=0, atol=0.05)
    torch.testing.assert_close(far.float(), near, rtol=0, atol=0.05)
