"""Adds reviews without end, and prints the id of each one that is kept. Meant to be killed."""

import sys
from pathlib import Path

from headwise.study.progress import Store, add_review, latest_answers

store = Store(Path(sys.argv[1]))
latest_answers(store, "small")  # another way in
at, heads = int(sys.argv[2]), {}
number = 0
while True:
    number += 1
    card, id = f"card-{number % 7}", f"{sys.argv[3]}-{number:08d}"
    at += 60_000
    found = add_review(
        store,
        id=id,
        guide="small",
        card=card,
        rev=1,
        rating=1 + number % 4,
        expects=heads.get(card),
        clock=at,
    )
    heads[card] = found.state.head
    print(id, flush=True)
