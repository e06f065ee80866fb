"""Formulas and pages as one line of text, as search has them."""

import json

import pytest

from headwise.study.render import search
from headwise.study.render.reading import read_tex
from headwise.study.render.words import words


@pytest.mark.parametrize(
    ("tex", "reading"),
    [
        (r"W^O", "W^O"),
        (r"QK^\top", "QK^T"),
        (r"d_k", "d_k"),
        (r"d_{\text{model}}", "d_model"),
        (r"\sqrt{d_k}", "√d_k"),
        (r"\sqrt 2", "√2"),
        (r"\sqrt{d_k \cdot 2}", "√(d_k · 2)"),
        (r"W^Q_i", "W^Q_i"),
        (r"W_i^Q", "W^Q_i"),
        (r"\beta_2", "β_2"),
        (r"\omega", "ω"),
        (r"h=8", "h = 8"),
        (r"h_{t-1}", "h_(t-1)"),
        (r"10^{18}", "10^18"),
        (r"step^{-0.5}", "step^-0.5"),
        (r"e^{s_j}", "e^(s_j)"),
        (r"1{,}024", "1,024"),
        (r"\frac{5 + n}{6}", "(5 + n)/6"),
        (r"\text{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right) V", "softmax(QK^T/√d_k) V"),
        (r"\begin{pmatrix} 1 & 0 \\ 0 & 2 \end{pmatrix} x", "(1 0; 0 2) x"),
        (r"a < b", "a < b"),
    ],
)
def test_a_formula_reads_as_it_is_typed(tex, reading):
    assert read_tex(tex) == reading


@pytest.mark.parametrize("tex", ["", "^", "_{", r"\frac", r"\sqrt", "x^{", r"\begin{pmatrix", "}", "\\"])
def test_broken_tex_is_read_without_an_error(tex):
    assert isinstance(read_tex(tex), str)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>This is <em>new</em>: all.</p><p>More.</p>", "This is new: all. More."),
        (
            "<p>Counts:</p><table><thead><tr><th>Head</th><th>Share</th></tr></thead>"
            "<tbody><tr><td>1</td><td>64</td></tr><tr><td>2</td><td></td></tr></tbody></table><p>So</p>",
            "Counts: Head | Share; 1 | 64; 2 |. So",
        ),
        ("<table><tr><th><span class='unseen'>d_k</span>d_k</th></tr></table>", "d_k."),
        ("<ul><li>one</li><li>two.</li></ul>", "one. two."),
        ("<pre><span>torch</span><span>.</span><span>rand</span>(<span>3</span>)</pre>", "torch.rand(3)"),
        ("<p>a &lt;b&gt; c</p>", "a <b> c"),
    ],
)
def test_what_stands_apart_on_a_page_stands_apart_in_words(html, text):
    assert words(html) == text


def test_the_index_holds_formulas_tables_and_what_a_block_shows(kept_guide):
    entries = {one["url"]: one for one in json.loads(search.index(kept_guide))["entries"]}
    assert entries["first/#wide"]["title"] == "As wide as d_k"
    assert "d_k = 512 / h" in entries["first/#wide"]["words"]
    assert "Head | Share; 1 | 64." in entries["first/#wide"]["words"]
    assert entries["first/#asked"]["words"] == "How wide is d_k?"
    assert "A mask. Who sees whom." in entries["first/#see-mask"]["words"]
    assert entries["deck/#card-two"]["title"] == "Scores are divided by […]."
    assert "<" not in json.dumps([one["title"] for one in entries.values()])
