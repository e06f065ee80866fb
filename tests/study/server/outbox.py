"""Entries that wait in a browser until the server takes them."""

import json

OUTBOX = "headwise-study-outbox/"


def put(page, id, path, when, **body):
    entry = {"path": path, "profile": "default", "when": when, "body": {"id": id, **body}}
    page.evaluate("([key, text]) => localStorage.setItem(key, text)", [OUTBOX + id, json.dumps(entry)])


def waiting(page):
    return page.evaluate("Object.keys(localStorage).filter((key) => key.includes('outbox')).sort()")


def a_review(guide="small", card="card-one"):
    return {"guide": guide, "card": card, "rev": 1, "rating": 3, "expects": None}
