"""Empty calls, dead rows, positions that are not indices, names and mistakes."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, replace

import dense_observations as dense
import pytest
import torch

from headwise.attention import attention
from headwise.kernels.measure import measure
from headwise.masks import Causal, Documents, Frame, KeyLengths
from headwise.observers import (
    Distance,
    Entropy,
    KeyMass,
    LogSumExp,
    Map,
    Mass,
    MaxWeight,
    Observations,
    Observer,
    Offset,
    Spread,
    TopKeys,
    Weights,
)

ALL = [
    Weights(),
    Entropy(),
    LogSumExp(),
    Distance(),
    Spread(),
    KeyMass(),
    TopKeys(3),
    MaxWeight(),
    Map((5, 7)),
    Offset(-1),
    Mass([]),
    Mass(torch.tensor(True).expand(1)[:0], called="empty"),
]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(
    ("batch", "q_len", "k_len"), [((2,), 0, 11), ((2,), 11, 0), ((0,), 7, 11), ((2, 0), 7, 0), ((), 0, 0)]
)
def test_empty(batch, q_len, k_len, grad):
    p = dense.problem(batch, 6, 2, q_len, k_len, mask=Causal() if k_len else None)
    p.q.requires_grad_(grad)
    seen = measure(p, ALL[:-1])
    head = (*batch, 6)
    assert seen.weights.shape == (*head, q_len, k_len)
    for name in ("entropy", "log_sum_exp", "distance", "spread", "offset", "mass"):
        assert seen[name].shape == (*head, q_len)
    assert seen.key_mass.shape == (*head, k_len)
    assert seen.top_keys.indices.shape == seen.top_keys.weights.shape == (*head, q_len, 3)
    assert seen.max_weight.value.shape == seen.max_weight.key.shape == (*head, q_len)
    assert seen.map.shape == (*head, min(5, q_len), min(7, k_len))
    assert (seen.entropy == 0).all()
    assert (seen.log_sum_exp == float("-inf")).all()
    assert (seen.top_keys.indices == -1).all()
    assert (seen.max_weight.key == -1).all()
    assert (seen.key_mass == 0).all()
    assert seen.row_sum_error == 0


def test_dead_rows_are_zero_exactly():
    p = dense.problem((2,), q_len=7, k_len=5, mask=Causal() & KeyLengths(torch.tensor([0, 5])))
    seen = measure(p, ALL[:-1])
    for name in ("weights", "entropy", "distance", "spread", "offset", "key_mass", "map"):
        assert (seen[name][0] == 0).all(), name
    for name in ("weights", "entropy", "distance", "spread", "offset"):
        assert (seen[name][1, :, :2] == 0).all(), name  # queries before the first key
    assert (seen.log_sum_exp[0] == float("-inf")).all()
    assert (seen.top_keys.indices[0] == -1).all()
    assert (seen.top_keys.weights[0] == 0).all()
    assert (seen.max_weight.key[0] == -1).all()
    assert (seen.max_weight.value[0] == 0).all()
    # cells of 7 queries in 5: queries 0 and 1 (dead) are cell 0
    torch.testing.assert_close(seen.map[1].sum(-1), torch.tensor([0.0, 1, 1, 1, 1]).double().expand(6, 5))


def test_no_observers():
    seen = measure(dense.problem(q_len=5, k_len=5), [])
    assert dict(seen) == {}
    assert seen.row_sum_error == 0


def test_dropout_has_no_part():
    p = dense.problem(q_len=5, k_len=7)
    dropped = replace(p, dropout=0.5, seed=torch.tensor(3))
    assert torch.equal(measure(p, [Weights()]).weights, measure(dropped, [Weights()]).weights)


def test_positions_count_and_not_indices():
    """A cache may hold keys in any order, and packed documents start again at 0."""
    p = dense.problem((2,), q_len=5, k_len=5)
    order = torch.tensor([[3, 1, 4, 0, 2], [0, 1, 2, 0, 1]])
    p = replace(
        p, frame=Frame.of((2,), 6, 5, 5, q_pos=torch.arange(5) * torch.ones(2, 1).long(), k_pos=order)
    )
    w = dense.weights(p)
    apart = (order[:, None, :] - torch.arange(5)[:, None])[:, None]
    seen = measure(p, [Distance(), Offset(-1), Spread()])
    torch.testing.assert_close(seen.distance, (w * apart.abs()).sum(-1))
    torch.testing.assert_close(seen.offset, torch.where(apart == -1, w, 0).sum(-1))
    mean = (w * apart).sum(-1, keepdim=True)
    torch.testing.assert_close(seen.spread, (w * (apart - mean).square()).sum(-1))


def test_a_map_of_two_documents_is_block_diagonal():
    ids = torch.tensor([0] * 60 + [1] * 60)
    seen = measure(dense.problem((1,), q_len=120, k_len=120, mask=Documents(ids)), [Map(2)])
    torch.testing.assert_close(seen.map, torch.eye(2).double().expand(1, 6, 2, 2))


def test_more_keys_asked_for_than_there_are():
    p = dense.problem((1,), q_len=3, k_len=3, mask=Causal())
    top = measure(p, [TopKeys(5)]).top_keys
    assert top.indices.shape == (1, 6, 3, 5)
    assert (top.indices[..., 0, :] == torch.tensor([0, -1, -1, -1, -1])).all()
    assert (top.indices[..., 3:] == -1).all()
    torch.testing.assert_close(top.weights.sum(-1), torch.ones(1, 6, 3).double())


# Names


def test_names_tell_observers_apart():
    p = dense.problem((2,), q_len=5, k_len=5)
    seen = measure(
        p, [Offset(-1), Offset(1), Entropy(), Entropy(heads=(0, 1, 2)), TopKeys(2), Weights(rows=(-1,))]
    )
    names = ["offset[-1]", "offset[1]", "entropy", "entropy[heads=0..2]", "top_keys[2]", "weights[rows=-1]"]
    assert list(seen) == names
    assert torch.equal(seen[Offset(1)], seen["offset[1]"])
    assert seen.top_keys is seen["top_keys[2]"]
    assert seen.weights.shape == (2, 6, 1, 5)
    assert seen.entropy.shape == (2, 6, 5)  # the exact name comes before the kind
    assert Offset(-1) in seen
    assert "offset" not in seen  # which of the two?
    assert Offset(0) not in seen
    with pytest.raises(AttributeError, match=r"offset\[-1\], offset\[1\]: ask for one"):
        _ = seen.offset
    with pytest.raises(
        KeyError, match=r"no observation 'distance'; observed: offset\[-1\], offset\[1\], entropy"
    ):
        seen[Distance()]
    with pytest.raises(AttributeError, match="no observation 'entropie'"):
        _ = seen.entropie
    assert repr(seen).startswith(
        "Observations(offset[-1]: [2, 6, 5], offset[1]: [2, 6, 5], entropy: [2, 6, 5],"
    )
    assert "top_keys[2]: (indices [2, 6, 5, 2], weights [2, 6, 5, 2])" in repr(seen)
    assert "entropy" in dir(seen)


def test_observations_move_copy_and_pickle():
    p = dense.problem((2,), q_len=5, k_len=5)
    p.q.requires_grad_()
    seen = measure(p, [Entropy(), MaxWeight()], lse=dense.lse(p))
    plain = seen.detach()
    assert not plain.entropy.requires_grad
    assert plain.row_sum_of == "kernel"
    assert type(plain.max_weight) is type(seen.max_weight)
    assert seen.to("meta").max_weight.key.device.type == "meta"
    for other in (copy.copy(plain), copy.deepcopy(plain), pickle.loads(pickle.dumps(plain)), plain.cpu()):
        assert isinstance(other, Observations)
        assert torch.equal(other.entropy, seen.entropy)
        assert other != plain
        assert len({other, plain}) == 2


# An observer of one's own


@dataclass(frozen=True, eq=False)
class Effective(Observer):
    """1 / sum_j P_ij^2: how many keys a query uses."""

    @property
    def name(self):
        return self.label("effective")

    def measure(self, block):
        square = block.weights.square().sum(-1)
        return (torch.where(square > 0, 1 / square, 0.0),)


def test_an_observer_of_ones_own():
    p = dense.problem(mask=Causal())
    seen = measure(p, [Effective(), Effective(heads=(2,))])
    expected = 1 / dense.weights(p).square().sum(-1)
    torch.testing.assert_close(seen.effective, expected)
    torch.testing.assert_close(seen["effective[heads=2]"], expected[:, 2:3])


# Mistakes: before anything is computed, with values, rule and fix


def fails(error, match, *observers, **sizes):
    p = dense.problem(**{"batch": (2,), "q_len": 5, "k_len": 7} | sizes)
    with pytest.raises(error, match=match):
        measure(p, observers)


def test_mistakes_about_observers():
    fails(TypeError, r"the class Entropy: write Entropy\(\)", Entropy)
    fails(TypeError, r"such as Entropy\(\), got 'entropy'", "entropy")
    q = torch.randn(1, 2, 3, 5)
    for wrong in (Entropy(), (one for one in [Entropy()]), "entropy"):  # a generator is empty the second time
        with pytest.raises(TypeError, match=r"a list of observers, such as \[Entropy\(\)\]"):
            attention(q, q, q, observe=wrong)
    fails(ValueError, "two observers are called 'entropy'", Entropy(), Entropy())
    fails(ValueError, r"two observers are called 'mass\[mask\]'", *[Mass(torch.ones(7).bool()) for _ in "ab"])


def test_mistakes_about_rows_and_heads():
    fails(ValueError, r"weights\[rows=5\]: rows asks for 5, but there are 5 rows", Weights(rows=(5,)))
    fails(ValueError, "heads asks for -7, but there are 6 heads", Entropy(heads=(0, -7)))
    fails(ValueError, "rows names 4 twice", KeyMass(rows=(4, 1, -1)))
    fails(TypeError, r"rows must be a sequence of int .*got \(0.5,\)", Weights(rows=(0.5,)))
    fails(TypeError, "heads must be a sequence of int .*got 3", Weights(heads=3))
    fails(TypeError, "sequence of int", Weights(heads=(True,)))
    fails(
        TypeError, "rows must be a sequence of int", Weights(rows=(row for row in (0, 1)))
    )  # read only once
    fails(TypeError, "rows must be a sequence of int", Weights(rows={3, 1}))  # no order


def test_a_choice_of_no_heads_or_rows_is_empty():
    p = dense.problem(batch=(2,), q_len=5, k_len=7)
    for observer in (Weights, Entropy, KeyMass, TopKeys, MaxWeight, Map, LogSumExp):
        whole = measure(p, [observer()])
        for none in ({"heads": ()}, {"rows": ()}, {"heads": (), "rows": (0,)}):
            (found,), (full,) = measure(p, [observer(**none)]).values(), whole.values()
            parts = found if isinstance(found, tuple) else (found,)
            for part, like in zip(parts, full if isinstance(full, tuple) else (full,), strict=True):
                assert part.ndim == like.ndim
                assert part.shape[1] == (0 if "heads" in none else like.shape[1])


def test_mistakes_about_keys():
    fails(ValueError, r"mass\[9\]: keys asks for 9, but there are 7 keys", Mass([9]))
    fails(ValueError, r"keys of shape \(6,\) don't fit .* \(2, 7\)", Mass(torch.ones(6).bool()))
    fails(ValueError, r"keys of shape \(3, 7\) don't fit", Mass(torch.ones(3, 7).bool()))
    fails(ValueError, r"keys of shape \(1, 2, 7\) don't fit", Mass(torch.ones(1, 2, 7).bool()))
    fails(
        ValueError, r"classes run from 0 to 3, but must lie in -1 .. 2", Mass(torch.arange(7) % 4, classes=3)
    )
    fails(TypeError, "keys must be a sequence of int", Mass(3))
    fails(TypeError, "keys must be a sequence of int", Mass(key for key in (0, 1)))
    for error, match, make in [
        (TypeError, "got torch.float32", lambda: Mass(torch.ones(7))),
        (TypeError, "integer tensor", lambda: Mass([0, 1], classes=2)),
        (TypeError, "several names, got 'sep'", lambda: Mass(torch.arange(7), classes="sep")),
        (ValueError, "one class or more", lambda: Mass(torch.arange(7), classes=())),
        (ValueError, r"takes indices .* got \(2, 3\)", lambda: Mass(torch.zeros(2, 3).long())),
        (TypeError, "names, got True", lambda: Mass(torch.arange(7), classes=True)),
        (TypeError, "names, got 2.5", lambda: Mass(torch.arange(7), classes=2.5)),
        (TypeError, "got 1.5", lambda: Offset(1.5)),
        (ValueError, "that far apart", lambda: Offset(-(2**63))),
        (ValueError, "k of 1 or more, got 0", lambda: TopKeys(0)),
        (TypeError, "got '8'", lambda: TopKeys("8")),
        (ValueError, "cells of 1 or more", lambda: Map((3, 0))),
        (TypeError, "a pair", lambda: Map((1, 2, 3))),
        (TypeError, "unexpected keyword", lambda: Entropy(base=2)),
    ]:
        with pytest.raises(error, match=match):
            make()


def test_what_is_masked_weighs_nothing_in_a_row_that_attends_to_nan() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 5, 3, dtype=torch.float64) for _ in range(3))
    k[:, :, 1] = float("nan")
    _, seen = attention(q, k, v, mask=Causal(), observe=[Weights(), KeyMass()])
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    assert (seen.weights[..., future] == 0).all()
    assert seen.weights[..., 1:, :2].isnan().all()  # rows that attend to key 1
    first = torch.tensor([1.0, 0, 0, 0, 0], dtype=torch.float64)
    assert torch.equal(seen.weights[..., 0, :], first.expand(1, 2, 5))


@pytest.mark.parametrize("kernel", ["auto", "reference"])
def test_the_default_device_is_of_no_account(kernel: str) -> None:
    q, k, v = (torch.randn(1, 2, 9, 4) for _ in range(3))
    observers = [Entropy(), TopKeys(2), KeyMass(), Map(3), Map(3, rows=(1, 7)), Offset(-1), Mass([0, 1])]
    _, want = attention(q, k, v, mask=Causal(), observe=observers, kernel=kernel)
    with torch.device("meta"):
        _, got = attention(q, k, v, mask=Causal(), observe=observers, kernel=kernel)
    for observer in observers:
        torch.testing.assert_close(got[observer.name], want[observer.name])
