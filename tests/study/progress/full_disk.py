"""Adds reviews until no file may grow any more, then says what it was told and what is still there."""

import resource
import signal
import sys
from pathlib import Path

from headwise.study.progress import NotSaved, Store, add_review, export_progress

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
kept, head = 0, None
try:
    while kept < 20_000:
        found = add_review(
            store,
            id=f"review-{kept:08d}",
            guide="small",
            card="a",
            rev=1,
            rating=3,
            expects=head,
            clock=1_796_040_000_000 + kept * 60_000,
        )
        kept, head = kept + 1, found.state.head
except NotSaved as error:
    print(error)
print(kept, len(export_progress(store, clock=0)["reviews"]))
