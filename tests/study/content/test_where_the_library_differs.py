"""harvardnlp/annotated-transformer#1, #92, #110: code differed from the paper, and the text didn't say so.

Each place where the guide says that the library does otherwise, or more, names the paper's passage and the
library's own code. What it says is held here for both: the paper's behaviour and the other one.
"""

import pytest
import torch
from torch import nn

import headwise as hw
from headwise.kernels.reference import softmax
from headwise.models import EncoderLayer
from headwise.study.content import Lesson, load_guide
from headwise.study.site import STATIC
from headwise.training import token_loss

FOLDER = STATIC.parents[3] / "guides" / "attention-is-all-you-need"


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the guide lies beside a source checkout only")
def test_each_implementation_detail_has_the_papers_passage_and_the_librarys_code():
    guide = load_guide(FOLDER)
    lessons = [one for one in guide.activities.values() if isinstance(one, Lesson)]
    details = [block for lesson in lessons for block in lesson.walk() if block.kind == "detail"]
    assert len(details) >= 10
    assert [block.id for block in details if not (block.sources and block.symbols)] == []


def test_both_orders_of_the_normalisation():
    """`norm="post"` is LayerNorm(x + Sublayer(x)); `norm="pre"` is x + Sublayer(LayerNorm(x))."""
    torch.manual_seed(3)
    x = torch.randn(1, 5, 8, dtype=torch.float64)
    for norm in ("post", "pre"):
        layer = EncoderLayer(8, 2, 16, norm=norm).double().eval()
        first, second = layer.self_attention_norm, layer.feed_forward_norm
        attend, feed = layer.self_attention, layer.feed_forward
        if norm == "post":
            middle = first(x + attend(x))
            right = second(middle + feed(middle))
        else:
            middle = x + attend(first(x))
            right = middle + feed(second(middle))
        torch.testing.assert_close(layer(x), right, rtol=0, atol=1e-12)


def test_a_row_of_nothing_is_nan_in_the_formula_and_0_here():
    """Equation 1 divides 0 by 0 where every score is -inf."""
    scores = torch.full((1, 3), float("-inf"))
    assert scores.softmax(-1).isnan().all()
    weights, lse = softmax(scores)
    assert weights.eq(0).all()
    assert lse.eq(float("-inf")).all()


def test_projections_have_no_bias_as_in_the_paper_and_unlike_torchs():
    ours, torchs = hw.MultiHeadAttention(8, 2), nn.MultiheadAttention(8, 2)
    assert sum(p.numel() for p in ours.parameters()) == 4 * 8 * 8
    assert sum(p.numel() for p in torchs.parameters()) == 4 * 8 * 8 + 4 * 8


def test_smoothing_spreads_over_all_tokens_and_tensor2tensors_over_the_others():
    torch.manual_seed(5)
    classes, eps = 7, 0.1
    logits, target = torch.randn(1, classes, dtype=torch.float64), torch.tensor([2])
    log_p = logits.log_softmax(-1)[0]
    over_all = torch.full((classes,), eps / classes, dtype=torch.float64)
    over_all[2] += 1 - eps
    over_others = torch.full((classes,), eps / (classes - 1), dtype=torch.float64)
    over_others[2] = 1 - eps
    found = token_loss(logits, target, smoothing=eps).loss_sum
    torch.testing.assert_close(found, -(over_all * log_p).sum(), rtol=0, atol=1e-12)
    # The other way is the same with a slightly larger eps: eps K / (K - 1).
    other = token_loss(logits, target, smoothing=eps * classes / (classes - 1)).loss_sum
    torch.testing.assert_close(other, -(over_others * log_p).sum(), rtol=0, atol=1e-12)
