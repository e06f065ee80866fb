"""The documentation can't go stale: its examples run, its links lead somewhere, its names exist."""

from __future__ import annotations

import re

import pytest
import torch
from pages import ROOT, Page, exists, is_file, pages

from headwise.kernels.native_build import native

PAGES = pages()
# Pages whose examples a test of their own runs, beside other checks
RUN_ELSEWHERE = {
    "docs/interop.md": "tests/interop/test_interop_page.py",
    "docs/masks.md": "tests/masks/test_docs.py",
    "docs/observing.md": "tests/observers/test_observing_page.py",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_print_what_the_page_shows(page: Page) -> None:
    # Each block of Python is an example: one that is indented or has words behind ```python would not run.
    assert len(page.examples) == len(re.findall(r"``` *python", page.text))
    if page.name in RUN_ELSEWHERE:
        return
    if native is None and any("native" in (example.shown or "") for example in page.examples):
        pytest.skip("what the page shows needs the compiled kernel, which wasn't built")
    torch.manual_seed(0)
    for example, printed in page.run():
        if example.shown is not None:
            assert printed.rstrip() == example.shown.rstrip(), f"{page.name}, line {example.line}"


@pytest.mark.parametrize(("page", "test"), RUN_ELSEWHERE.items())
def test_pages_run_elsewhere_have_their_test(page: str, test: str) -> None:
    assert page in {known.name for known in PAGES}
    assert page.rpartition("/")[2] in (ROOT / test).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Page) -> None:
    for link in page.links:
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", target):
            assert re.fullmatch(r"https://[\w.-]+\.[a-z]+(/\S*)?|mailto:\S+", link), link
            continue
        path = (page.path.parent / target).resolve() if target else page.path
        assert path.is_relative_to(ROOT), f"{link} leads out of the repository"
        assert path.exists(), link
        if anchor:
            assert path.suffix == ".md", link
            assert anchor in Page(path).anchors, f"{link}: anchors are {sorted(Page(path).anchors)}"


def test_the_index_lists_every_page_once() -> None:
    index = Page(ROOT / "docs" / "index.md")
    docs = ROOT / "docs"
    listed = sorted(link for link in index.links if not link.startswith(".."))
    assert listed == sorted(str(path.relative_to(docs)) for path in docs.rglob("*.md") if path != index.path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_exist(page: Page) -> None:
    gone = {name for name in page.names if not exists(name)}
    assert not gone


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_exist(page: Page) -> None:
    gone = {name for name in page.files if not is_file(name)}
    assert not gone


def test_names_that_are_gone_are_found() -> None:
    assert exists("headwise.interop.torch.MultiheadAttention")
    assert not exists("headwise.interop.torch.MultiheadAttention.nothing")
    assert not exists("headwise.nothing")
