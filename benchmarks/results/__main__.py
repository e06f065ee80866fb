"""Write a run into docs/results.md, or the page again from what is kept in docs/results.

python -m benchmarks.results multi30k RUN --checkpoint best --checkpoint average
python -m benchmarks.results multi30k RUN --data DIR       where the data stands now
python -m benchmarks.results                               the page again
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results import page
from benchmarks.results.collect import OBSERVED, How, collect
from benchmarks.results.sections import BY_NAME


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.results", description="Write a run into docs/results.md."
    )
    parser.add_argument("section", nargs="?", metavar="SECTION", help=f"one of {', '.join(BY_NAME)}")
    parser.add_argument("run", nargs="?", type=Path, metavar="RUN", help="the folder of a trained run")
    parser.add_argument(
        "--data",
        type=Path,
        action="append",
        default=[],
        help="where the data is, if not where the run read it",
    )
    parser.add_argument(
        "--checkpoint",
        action="append",
        choices=("best", "last", "average"),
        help="evaluate this one (default: best); of several, the validation set chooses",
    )
    parser.add_argument(
        "--threads",
        type=int,
        help="of the training, for a run that doesn't say on what machine it was made: this one",
    )
    parser.add_argument("--note", default="", help="what has to be known of the run, in a sentence")
    parser.add_argument("--observe", type=int, default=OBSERVED, help="inputs that heads are observed on")
    parser.add_argument("--unfinished", action="store_true", help="take a run that could still go on")
    parser.add_argument("--docs", type=Path, default=page.DOCS, help="the folder that holds results.md")
    given = parser.parse_args(arguments)
    if given.section is not None:
        if given.section not in BY_NAME:
            parser.error(f"there is no section {given.section!r}: choose of {', '.join(BY_NAME)}")
        if given.run is None:
            parser.error(f"name the folder of a run for {given.section}")
        how = How(
            data=tuple(given.data),
            checkpoints=tuple(given.checkpoint or ("best",)),
            threads=given.threads,
            note=given.note,
            observed=given.observe,
            unfinished=given.unfinished,
        )
        try:
            facts = collect(BY_NAME[given.section], given.run, given.docs / "images" / "results", how)
        except (ValueError, OSError) as error:
            print(error, file=sys.stderr)
            return 2
        kept = given.docs / "results" / f"{given.section}.json"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(facts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(page.write(given.docs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
