"""Drawings: every cell right, valid XML, labels escaped, and honest about what they leave out."""

from __future__ import annotations

import re
import unicodedata
from xml.etree import ElementTree

import pytest
import torch
from mask_by_hand import true_tiles

from headwise.masks import (
    Allow,
    Causal,
    Documents,
    Frame,
    KeyLengths,
    Mask,
    Prefix,
    Tile,
    Window,
    draw,
    draw_svg,
)
from headwise.masks.picture import picture

SVG = "{http://www.w3.org/2000/svg}"
MASKS: list[Mask] = [
    Causal(),
    Window(2, 1),
    Causal() & Window(3, 0) | Prefix(2),
    KeyLengths(3) & ~Window(0, 0),
    Documents(torch.tensor([0, 0, 1, 1, 1, -1, 2, 2, 2, 2, 2])),
]


def cells_of_text(text: str, signs: str = "■◧·") -> list[list[int]]:
    """Codes read back from a drawing."""
    rows = [line.split("  ")[-1] for line in text.splitlines() if re.match(rf"^ *\S+  [{signs}]", line)]
    return [[{signs[0]: 2, signs[1]: 1, signs[2]: 0}[sign] for sign in row.split()] for row in rows]


@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize("mask", MASKS, ids=repr)
def test_text_shows_every_pair(mask: Mask, ascii: bool) -> None:
    text = draw(mask, 7, 11, ascii=ascii)
    dense = mask.dense(Frame.of((), 1, 7, 11))[0]
    assert cells_of_text(text, "#+." if ascii else "■◧·") == (2 * dense.long()).tolist()
    assert text.startswith(f"{mask.describe()}: 7 queries x 11 keys\n")
    if ascii:
        text.encode("ascii")


def test_a_drawing_on_paper() -> None:
    assert draw(Causal() & KeyLengths(2), 3, q_tokens=["a", "bc", "d"]) == (
        "causal & key lengths 2: 3 queries x 3 keys\n"
        "      b\n"
        "    a c d\n"
        " a  ■ · ·\n"
        "bc  ■ ■ ·\n"
        " d  ■ ■ ·\n"
        "rows: queries; columns: keys; ■ may attend, · may not\n"
    )


@pytest.mark.parametrize(("q_len", "k_len"), [(101, 101), (37, 100), (100, 11), (11, 11)])
@pytest.mark.parametrize("mask", MASKS[:4], ids=repr)
def test_long_lengths_are_pooled_and_say_so(mask: Mask, q_len: int, k_len: int) -> None:
    seen = picture(mask, q_len, k_len, cells=12)
    q_block, k_block = -(-q_len // 12), -(-k_len // 12)
    dense = mask.dense(Frame.of((), 1, q_len, k_len))[0]
    assert [list(row) for row in seen.cells] == true_tiles(dense, q_block, k_block).tolist()
    assert len(seen.cells) <= 12
    pooled = q_block > 1 or k_block > 1
    assert (f"a cell is {q_block} x {k_block} pairs" in seen.note) == pooled
    assert cells_of_text(draw(mask, q_len, k_len, cells=12)) == true_tiles(dense, q_block, k_block).tolist()


@pytest.mark.parametrize("tile", [64, (64, 100)])
def test_tiles_are_drawn_as_the_mask_classifies_them(tile: int | tuple[int, int]) -> None:
    mask = Causal() & Window(130, 0) & Documents(torch.arange(600) // 250)
    q_block, k_block = (tile, tile) if isinstance(tile, int) else tile
    codes = mask.tiles(Frame.of((), 1, 600, 600), q_block, k_block).reshape(-1, -(-600 // k_block))
    text = draw(mask, tile=tile)
    assert cells_of_text(text) == codes.tolist()
    assert "full tile" in text
    assert f"a tile is {q_block} x {k_block} pairs" in text


def test_entry_and_head() -> None:
    tensor = torch.rand(2, 3, 5, 7, generator=torch.Generator().manual_seed(2)) < 0.5
    text = draw(Allow(tensor), entry=1, head=2)
    assert cells_of_text(text) == (2 * tensor[1, 2].long()).tolist()
    assert "batch entry 1 of 2; head 2 of 3" in text
    folded = KeyLengths(torch.tensor([[1, 2, 3], [4, 5, 6]]))
    assert cells_of_text(draw(folded, 1, 7, entry=(1, 0))) == [[2, 2, 2, 2, 0, 0, 0]]
    assert "batch entry 0, 0 of 2 x 3" in draw(folded)


def test_frames_of_ones_own() -> None:
    frame = Frame.of((2,), 1, 2, 3, q_pos=torch.tensor([[5, 6], [7, 8]]), k_pos=torch.tensor([6, 7, 8]))
    text = draw(Causal(), frame=frame, entry=1)
    assert cells_of_text(text) == [[2, 2, 0], [2, 2, 2]]
    assert [line.split()[0] for line in text.splitlines()[2:4]] == ["7", "8"]


@pytest.mark.parametrize(
    ("mask", "size"),
    [
        (Causal(), (12, 12)),
        (KeyLengths(7), (12, 12)),
        (KeyLengths(20), (20, 20)),
        (Documents(torch.arange(9)), (9, 9)),
        (Documents(torch.arange(9), torch.arange(4)), (4, 9)),
        (Allow(torch.ones(5, 7).bool()), (5, 7)),
        (Causal() & Allow(torch.ones(1, 1, 1, 7).bool()), (7, 7)),
        (Allow(torch.ones(5, 1).bool()), (5, 5)),
    ],
    ids=repr,
)
def test_size_without_lengths(mask: Mask, size: tuple[int, int]) -> None:
    seen = picture(mask)
    assert (len(seen.q_labels), len(seen.k_labels)) == size
    assert mask._repr_svg_() == draw_svg(mask)


@pytest.mark.parametrize(("q_len", "k_len"), [(0, 0), (0, 3), (3, 0)])
def test_nothing_to_draw(q_len: int, k_len: int) -> None:
    assert "(no pairs)" in draw(Causal(), q_len, k_len)
    ElementTree.fromstring(draw_svg(Causal(), q_len, k_len))


def test_wide_and_odd_tokens_keep_columns_straight() -> None:
    tokens = ["日本", "a\nb", "e\u0301", "x" * 40, "😀"]

    def width(text: str) -> int:
        wide = (unicodedata.east_asian_width(char) in "WF" for char in text)
        return sum(0 if unicodedata.combining(c) else 1 + w for c, w in zip(text, wide, strict=True))

    lines = draw(Window(None, None), q_tokens=tokens).splitlines()
    rows = [line for line in lines if "■ ■" in line]
    assert len(rows) == len(tokens)
    assert {width(row.split("■")[0]) for row in rows} == {width(rows[0].split("■")[0])}
    assert "a\\nb" in "\n".join(rows)
    assert "x" * 11 + "…" in rows[3]
    draw(Causal(), q_tokens=tokens, ascii=True).encode("ascii")


def shapes(svg: str) -> tuple[ElementTree.Element, list[ElementTree.Element]]:
    root = ElementTree.fromstring(svg)
    return root, list(root.iter())


def cells_of_svg(svg: str, rows: int, cols: int) -> list[list[int]]:
    """Codes read back from the shapes: filled and hatched rectangles, in units of a cell."""
    root, _ = shapes(svg)
    grid = root.find(f"{SVG}path[@class='grid']")
    assert grid is not None
    corner = re.match(r"M(\S+) (\S+)v", grid.attrib["d"])
    assert corner
    left, top = float(corner[1]), float(corner[2])
    codes = [[0] * cols for _ in range(rows)]
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("class") == "paper" or float(rect.attrib["y"]) >= top + 20 * rows:
            continue  # the ground, and the legend
        i = round((float(rect.attrib["y"]) - top) / 20)
        j = round((float(rect.attrib["x"]) - left) / 20)
        for n in range(round(float(rect.attrib["width"]) / 20)):
            codes[i][j + n] = 2 if rect.get("class") == "all" else 1
    return codes


@pytest.mark.parametrize("mask", MASKS, ids=repr)
def test_svg_shows_every_pair(mask: Mask) -> None:
    dense = mask.dense(Frame.of((), 1, 7, 11))[0]
    assert cells_of_svg(draw_svg(mask, 7, 11), 7, 11) == (2 * dense.long()).tolist()


def test_svg_of_pooled_cells_hatches_mixed_ones() -> None:
    dense = Causal().dense(Frame.of((), 1, 100, 100))[0]
    svg = draw_svg(Causal(), 100, cells=20)
    assert cells_of_svg(svg, 20, 20) == true_tiles(dense, 5, 5).tolist()
    assert "a cell is 5 x 5 pairs" in svg


def test_svg_speaks_to_screen_readers_and_follows_the_theme() -> None:
    svg = draw_svg(Causal() & KeyLengths(2), 4)
    root, everything = shapes(svg)
    assert root.get("role") == "img"
    ids = [element.get("id") for element in everything if element.get("id")]
    assert len(ids) == len(set(ids))
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert desc is not None
    assert root.attrib["aria-labelledby"].split() == [title.get("id"), desc.get("id")]
    assert title.text == "causal & key lengths 2: 4 queries x 4 keys"
    assert desc.text is not None
    assert desc.text.endswith("Who attends to whom: 0: 0; 1: 0, 1; 2: 0, 1; 3: 0, 1.")
    assert "@media (prefers-color-scheme:dark)" in svg
    assert not re.search(r"(href|src|url)\s*[=(]\s*[\"']?(http|//|data)", svg), "nothing is loaded"
    # Style sheets of an inline SVG reach the whole page: every rule names this picture.
    style = root.find(f"{SVG}style")
    assert style is not None
    assert style.text is not None
    rules = re.findall(r"([^{}@]+)\{[^{}]*\}", style.text)
    assert rules
    assert all(f".{root.get('class')}" in rule for rule in rules)


def test_two_pictures_on_one_page_share_no_ids() -> None:
    one, other = draw_svg(Causal(), 5), draw_svg(Causal(), 6)
    assert shapes(one)[0].get("class") != shapes(other)[0].get("class")
    assert one == draw_svg(Causal(), 5), "the same picture is the same text"


def test_labels_are_escaped() -> None:
    tokens = ["<b>&", "\"'", "]]>", "\x00\x1b[31m", "日本", "\ud800"]
    svg = draw_svg(Causal(), q_tokens=tokens)
    svg.encode("utf-8")
    texts = [element.text for element in shapes(svg)[1] if element.tag == f"{SVG}text"]
    for token in ("<b>&", "\"'", "]]>", "\\x00\\x1b[31m", "日本"):
        assert texts.count(token) == 2, token


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"q_tokens": ["a"]}, ["q_tokens", "1", "5"]),
        ({"k_tokens": ["a", "b"]}, ["k_tokens", "2", "5"]),
        ({"entry": 2}, ["entry=2", "2 of them"]),
        ({"entry": (0, 0)}, ["entry=(0, 0)", "[2]"]),
        ({"head": 1}, ["head=1", "1 of them"]),
        ({"cells": 0}, ["cells=0", "at least one"]),
        ({"tile": 0}, ["tile=0", "at least one"]),
        ({"tile": 1, "cells": 3}, ["5 x 5 tiles", "cells=3"]),
        ({"frame": Frame.of((2,), 1, 5, 5)}, ["frame=", "q_len=5"]),
    ],
)
def test_options_that_do_not_fit(options: dict[str, object], words: list[str]) -> None:
    with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
        draw(KeyLengths(torch.tensor([3, 4])), 5, 5, **options)
    assert all(word in str(caught.value) for word in words), caught.value


def test_unknown_options_and_masks_that_do_not_fit() -> None:
    with pytest.raises(TypeError, match="colour"):
        draw(Causal(), 5, colour="red")
    with pytest.raises(ValueError, match="k_len = 3"):
        draw(KeyLengths(7), 3, 3)
    with pytest.raises(ValueError, match="align='middle'"):
        draw(Causal(), 3, align="middle")
    with pytest.raises(ValueError, match="q_len=-1"):
        draw(Causal(), -1)


def test_cells_are_named() -> None:
    seen = picture(Causal(), 3)
    assert seen.used() == [Tile.FULL, Tile.EMPTY]
    assert set(seen.words) == set(Tile)
