"""The report as a file: what it carries, and what it must never contain."""

import base64
import json
import re
import zlib
from dataclasses import replace

import pytest
import torch

from headwise.cli.classify import Verdict
from headwise.cli.look import look
from headwise.cli.page import pack
from headwise.cli.report import render, telling

HOSTILE = 'She wrote <script>alert(1)</script> & </title> <!-- "quoted" \' \u2028 {{ 7*7 }} </script>'


def element(html, name):
    """Text of the script element with this id."""
    return re.search(rf'<script type="[a-z/]+" id="{name}">(.*?)</script>', html, re.DOTALL).group(1)


def numbers(packed):
    raw = zlib.decompress(base64.b64decode(packed))
    half = len(raw) // 2
    return torch.tensor([256 * high + low for high, low in zip(raw[:half], raw[half:], strict=True)])


def test_weights_survive_packing_to_three_decimals():
    weights = torch.tensor([0.0, 0.0004, 0.0006, 0.4314, 0.9996, 1.0, 1.0000001])
    assert numbers(pack(weights)).tolist() == [0, 0, 1, 431, 1000, 1000, 1000]


def test_a_short_text_carries_every_weight(report, seen):
    html = report.read_text(encoding="utf-8")
    expected = (seen.weights.double() * 1000).round().flatten().long()
    assert torch.equal(numbers(element(html, "weights")), expected)
    data = json.loads(element(html, "data"))
    assert data["tokens"] == list(seen.reading.tokens)
    assert len(data["facts"]) == 72


def test_a_long_text_carries_maps_and_strongest_keys_and_says_so(long_seen, long_text):
    long = long_seen
    html = render(long, text=long_text, origin="a test")
    assert len(html) < 3_000_000
    assert "first 512" in html
    assert "64 × 64 cells" in html
    assert numbers(element(html, "weights")).numel() == 72 * 64 * 64
    most = json.loads(element(html, "data"))["top"]
    keys = numbers(element(html, "top-keys")).view(6, 12, 512, most)
    assert torch.equal(keys, long.top_keys[..., :most])


def test_the_page_is_small(report):
    assert report.stat().st_size < 1_500_000


def test_nothing_is_fetched_from_anywhere(report):
    html = report.read_text(encoding="utf-8")
    assert not re.search(r'(?:src|href|action|poster|data-src)="(?!#|data:)', html)
    assert "url(" not in html
    assert "@import" not in html
    addresses = set(re.findall(r"https?://[^\"'\s)]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg"}


def test_the_policy_names_the_page_s_own_style_and_script(report):
    import hashlib

    html = report.read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html).group(1)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    for name, source in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert not re.search(r"<[^>]+\s(?:style|on[a-z]+)=", html)


@pytest.mark.parametrize("start", [None, (5, 11)])
def test_hostile_text_stays_text(minilm, start):
    seen = look(minilm, HOSTILE, HOSTILE)
    html = render(seen, text=HOSTILE, origin=HOSTILE, start=start)
    assert "<script>alert" not in html
    assert "</title> <!--" not in html
    assert html.count("</script>") == 3
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "49" not in re.search(r"<blockquote[^>]*>(.*?)</blockquote>", html, re.DOTALL).group(1)
    assert json.loads(element(html, "data"))["tokens"] == list(seen.reading.tokens)


def named(seen, *kinds):
    """The same text, with heads 0.0, 0.1, ... of these kinds and shares, and all others mixed."""
    facts = [replace(one, verdict=Verdict("mixed", None)) for one in seen.facts]
    for at, (kind, share) in enumerate(kinds):
        shares = {**facts[at].shares, kind: share}
        facts[at] = replace(facts[at], verdict=Verdict(kind, share), shares=shares)
    return replace(seen, facts=tuple(facts))


def test_the_most_telling_head_opens_first(seen):
    assert telling(seen.facts) == (2, 9)
    assert telling([facts for facts in seen.facts if facts.layer == 1]) == (1, 4)  # --layer 1
    assert telling(named(seen, ("previous", 1.0), ("same", 0.4), ("same", 0.6)).facts) == (0, 2)
    assert telling(named(seen, ("first", 0.9), ("previous", 0.7), ("nearby", 0.5)).facts) == (0, 2)
    assert telling(named(seen, ("first", 0.9), ("next", 0.7)).facts) == (0, 1)
    least = min(seen.facts, key=lambda facts: facts.evenness)
    assert telling(named(seen).facts) == (least.layer, least.head)


def test_tokens_of_the_page_stand_in_isolation(minilm):
    text = "שלום this"
    html = render(look(minilm, "all-MiniLM-L6-v2", text), text=text, origin="אבג.txt")
    assert "tokens from <bdi>אבג.txt</bdi>" in html
    assert html.count("</bdi> → <bdi>") == 72


def test_the_same_input_makes_the_same_page(minilm, sample, report):
    again = render(look(minilm, "all-MiniLM-L6-v2", sample), text=sample, origin="the sample text")
    assert again == report.read_text(encoding="utf-8")
