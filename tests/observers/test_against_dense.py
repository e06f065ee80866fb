"""Every observer equals the same statistic of the whole matrix, in every setting."""

from __future__ import annotations

import dense_observations as dense
import pytest
import torch

from headwise.kernels import measure as measuring
from headwise.kernels.measure import measure
from headwise.observers import (
    Distance,
    Entropy,
    KeyMass,
    LogSumExp,
    Map,
    Mass,
    MaxWeight,
    Offset,
    Spread,
    TopKeys,
    Weights,
)

EXACT = {"rtol": 1e-10, "atol": 1e-12}
SINGLE = {"rtol": 3e-5, "atol": 3e-6}


@pytest.fixture(params=list(dense.CASES))
def p(request):
    return dense.CASES[request.param]()


@pytest.fixture(params=["many small blocks", "float64", "float32"])
def seen_by(request, monkeypatch):
    """measure(), in float64 with blocks of a few rows and some heads, in float64, and in float32; and
    the tolerance."""
    if request.param == "many small blocks":
        monkeypatch.setattr(measuring, "CPU_BLOCK", 20_000)
    single = request.param == "float32"

    def run(p, *observers):
        return measure(dense.as_float32(p) if single else p, observers)

    return run, SINGLE if single else EXACT


def close(found, expected, tolerance):
    assert found.dtype in (torch.float32, torch.float64)
    assert found.shape == expected.shape
    torch.testing.assert_close(found.double(), expected, **tolerance)


def test_weights(p, seen_by):
    run, tolerance = seen_by
    close(run(p, Weights()).weights, dense.weights(p), tolerance)


def test_statistics_of_rows(p, seen_by):
    run, tolerance = seen_by
    w, apart = dense.weights(p), dense.offsets(p)
    seen = run(p, Entropy(), LogSumExp(), Distance(), Spread(), Offset(-1), Offset(0), Offset(3))
    close(seen.entropy, torch.special.entr(w).sum(-1), tolerance)
    close(seen.log_sum_exp, dense.lse(p), tolerance)
    close(seen.distance, (w * apart.abs()).sum(-1), tolerance)
    for d in (-1, 0, 3):
        close(seen[f"offset[{d}]"], torch.where(apart == d, w, 0).sum(-1), tolerance)
    share = torch.where(w.sum(-1, keepdim=True) > 0, w / w.sum(-1, keepdim=True), 0)
    mean = (share * apart).sum(-1, keepdim=True)
    close(seen.spread, (share * (apart - mean).square()).sum(-1), tolerance)


def test_statistics_of_keys(p, seen_by):
    run, tolerance = seen_by
    w = dense.weights(p)
    found = run(p, KeyMass(), MaxWeight(), TopKeys(5))
    close(found.key_mass, w.sum(-2), tolerance)
    dead = dense.scores(p).amax(-1) == float("-inf")
    close(found.max_weight.value, w.amax(-1), tolerance)
    assert torch.equal(found.max_weight.key, w.argmax(-1).masked_fill(dead, -1))
    visible = (dense.scores(p) > float("-inf")).sum(-1, keepdim=True)
    expected = w.sort(-1, descending=True)
    none = torch.arange(5) >= visible
    values = torch.nn.functional.pad(expected.values, (0, 5))[..., :5].masked_fill(none, 0)
    indices = torch.nn.functional.pad(expected.indices, (0, 5))[..., :5].masked_fill(none, -1)
    close(found.top_keys.weights, values, tolerance)
    if tolerance is EXACT:  # in float32 two keys may swap places
        assert torch.equal(found.top_keys.indices, indices)


@pytest.mark.parametrize("cells", [1, 7, (5, 3), 64, 1000])
def test_map(p, seen_by, cells):
    run, tolerance = seen_by
    q_cells, k_cells = cells if isinstance(cells, tuple) else (cells, cells)
    a, b = dense.cells(p.frame.q_len, q_cells), dense.cells(p.frame.k_len, k_cells)
    assert all(int(x.sum(0).max() - x.sum(0).min()) <= 1 for x in (a, b))  # an even split
    expected = torch.einsum("ia,...ij,jb->...ab", a / a.sum(0), dense.weights(p), b)
    close(run(p, Map(cells)).map, expected, tolerance)


def test_mass(p, seen_by):
    run, tolerance = seen_by
    w, n = dense.weights(p), p.frame.k_len
    batch = p.frame.batch
    g = torch.Generator().manual_seed(3)
    flags = torch.rand((*batch, n), generator=g) < 0.3
    classes = torch.randint(-1, 3, (*batch, n), generator=g)
    seen = run(
        p,
        Mass([0]),
        Mass((-1,), called="last"),
        Mass(flags, called="flags"),
        Mass(flags.reshape(-1, n)[0] if flags.numel() else flags[0], called="same for all"),
        Mass(classes, classes=["cls", "sep", "point"]),
        Mass(classes, classes=3),
    )
    close(seen["mass[0]"], w[..., 0], tolerance)
    close(seen["mass[last]"], w[..., -1], tolerance)
    close(seen["mass[flags]"], (w * flags[..., None, None, :]).sum(-1), tolerance)
    close(seen["mass[same for all]"], (w * flags.reshape(-1, n)[0]).sum(-1), tolerance)
    one_hot = torch.stack([classes == c for c in range(3)], -1).double()[..., None, :, :]
    close(seen["mass[cls,sep,point]"], w @ one_hot, tolerance)
    assert torch.equal(seen["mass[3 classes]"], seen["mass[cls,sep,point]"])


def test_rows_sum_to_one(p, seen_by):
    run, tolerance = seen_by
    seen = run(p, Entropy())
    assert seen.row_sum_of == "scores"
    assert seen.row_sum_error < tolerance["atol"]


ROWS, HEADS = (5, 0, -1), (4, 1, 5)


def test_chosen_rows_and_heads(seen_by):
    run, tolerance = seen_by
    for name in ("causal", "bias", "sinks", "two batch dimensions", "window"):
        p = dense.CASES[name]()
        w = dense.weights(p)[..., HEADS, :, :][..., ROWS, :]
        chosen = {"rows": ROWS, "heads": HEADS}
        seen = run(
            p, Weights(**chosen), Entropy(**chosen), KeyMass(**chosen), TopKeys(2, **chosen), Map(3, **chosen)
        )
        close(seen.weights, w, tolerance)
        close(seen.entropy, torch.special.entr(w).sum(-1), tolerance)
        close(seen.key_mass, w.sum(-2), tolerance)
        close(seen.top_keys.weights, w.sort(-1, descending=True).values[..., :2], tolerance)
        # rows 5 and 0 are in the first of three cells of queries, the last row in the third
        pooled = w @ dense.cells(p.frame.k_len, 3)
        first, last = pooled[..., :2, :].mean(-2), pooled[..., 2, :]
        close(seen.map, torch.stack([first, torch.zeros_like(first), last], -2), tolerance)


@pytest.mark.parametrize("heads", [(0,), (2, 3), (5, 4, 3, 2, 1, 0), (0, 1, 2, 3, 4, 5), (1, 4), (3, 4, 5)])
def test_chosen_heads_come_in_the_order_asked_for(heads, monkeypatch):
    p = dense.CASES["bias"]()
    for budget in (20_000, 2**23):
        monkeypatch.setattr(measuring, "CPU_BLOCK", budget)
        close(measure(p, [Weights(heads=heads)]).weights, dense.weights(p)[..., heads, :, :], EXACT)


def test_per_head_masks_and_biases_are_chosen_with_their_heads(monkeypatch):
    from headwise.masks import Allow

    g = torch.Generator().manual_seed(5)
    allow = torch.rand((6, 197, 197), generator=g) < 0.4
    p = dense.problem(mask=Allow(allow), bias=True)
    close(measure(p, [Weights(heads=(5, 2))]).weights, dense.weights(p)[:, (5, 2)], EXACT)
    monkeypatch.setattr(measuring, "CPU_BLOCK", 20_000)
    close(measure(p, [Weights()]).weights, dense.weights(p), EXACT)
