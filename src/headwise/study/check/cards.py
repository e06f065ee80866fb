"""Cards: something to ask, and something to answer."""

from __future__ import annotations

from headwise.study.check.checking import Checking
from headwise.study.check.questions import check_place
from headwise.study.content import Card, Deck
from headwise.study.content.cards import CLOZE


def check_cards(checking: Checking) -> None:
    """A basic card has a front and a back; a cloze hides something; each leads to where it is taught."""
    for activity in checking.guide.activities.values():
        if isinstance(activity, Deck):
            file = checking.file(activity)
            fronts: dict[str, str] = {}
            for number, card in enumerate(activity.cards):
                _check_card(checking, card, file, number)
                place = checking.line(file, "cards", number, "block")
                check_place(checking, card.block, card.id, file, place)
                front = " ".join((card.front or card.text).lower().split())
                if front and front in fronts:
                    checking.error(f"{card.id} asks the same as {fronts[front]}", file, card.line)
                fronts.setdefault(front, card.id)


def _check_card(checking: Checking, card: Card, file: str, number: int) -> None:
    def tell(message: str, *place: str) -> None:
        checking.error(f"{card.id}: {message}", file, checking.line(file, "cards", number, *place))

    if card.rev < 1:
        tell(f"rev = {card.rev}: revisions count from 1", "rev")
    if card.kind == "basic":
        if not card.front.strip() or not card.back.strip():
            tell("a basic card needs front and back")
        if card.text:
            tell('it has a text: write kind = "cloze", or front and back')
    else:
        if card.front or card.back:
            tell("a cloze has a text, no front and no back")
        hidden = CLOZE.findall(card.text)
        if not hidden:
            tell("a cloze hides something between [[ and ]]", "text")
        if any(not one.strip() for one in hidden):
            tell("[[ ]] hides nothing", "text")
        if card.text.count("[[") != card.text.count("]]"):
            tell("[[ and ]] must come in pairs", "text")
        if not CLOZE.sub("", card.text).strip(" .,;:$"):
            tell("it hides everything: leave something to go by", "text")
