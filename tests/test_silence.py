"""The benchmark that silences heads takes one away exactly, and puts it back."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from benchmarks import silence
from benchmarks.silence import Report, Silenced, measure, silenced
from torch import Tensor, nn

import headwise as hw


def test_a_silenced_head_adds_nothing_and_comes_back() -> None:
    layer = hw.MultiHeadAttention(15, 3, d_v=7).double()
    x = torch.randn(2, 11, 15, dtype=torch.float64)
    joined: list[Tensor] = []
    handle = layer.out_proj.register_forward_pre_hook(lambda module, given: joined.append(given[0].clone()))
    before = layer(x)
    handle.remove()
    joined[0][..., 7:14] = 0  # the second head's part of what the heads wrote
    with silenced(layer, 1):
        without = layer(x)
    torch.testing.assert_close(without, joined[0] @ layer.out_proj.weight.T)
    assert not torch.allclose(without, before)
    assert torch.equal(layer(x), before)


def test_it_comes_back_after_an_error_too() -> None:
    layer = hw.MultiHeadAttention(12, 2)
    before = layer.out_proj.weight.clone()
    with pytest.raises(RuntimeError, match="stop"), silenced(layer, 0):
        raise RuntimeError("stop")
    assert torch.equal(layer.out_proj.weight, before)


def test_a_head_that_isnt_there_is_named() -> None:
    with (
        pytest.raises(ValueError, match="head 5: the layer has heads 0 to 1"),
        silenced(hw.MultiHeadAttention(12, 2), 5),
    ):
        pass


def test_every_head_is_silenced_in_turn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = nn.ModuleList([hw.MultiHeadAttention(12, 2), hw.MultiHeadAttention(12, 3)])

    def evaluate(split: str, data: None, options: dict[str, Any]) -> Any:
        """Ten of thirteen are right; without head 1 of the second layer, six."""
        part = model[1].out_proj.weight[:, 4:8]  # type: ignore[index, union-attr]
        right = 6 if bool((part == 0).all()) else 10
        outputs = [{"output": "a" if number < right else "b", "reference": "a"} for number in range(13)]
        return SimpleNamespace(examples=13, outputs=outputs)

    trained = SimpleNamespace(model=model, evaluate=evaluate)
    monkeypatch.setattr(silence, "find", lambda name: SimpleNamespace(open=lambda *given: trained))
    report = measure(Path("runs/none"))
    assert (report.examples, report.right, len(report.heads)) == (13, 10, 5)
    assert report.worst == Silenced(1, 1, 6)
    assert report.harmless == 4
    assert report.fewest == (10, 6)
    assert silence.main(["runs/none"]) == 0
    assert "most missed: 1.1 (layer.head, from 0), 6 right without it" in capsys.readouterr().out
    assert silence.main(["runs/none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["heads"][4] == {"layer": 1, "head": 2, "right": 10}


def test_a_report_with_gains_counts_them_as_harmless() -> None:
    report = Report(5, 3, (Silenced(0, 0, 4), Silenced(0, 1, 3), Silenced(0, 2, 1)))
    assert (report.worst.head, report.harmless) == (2, 2)
    assert report.fewest == (1,)
