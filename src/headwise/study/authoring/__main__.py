"""`python -m headwise.study.authoring GUIDE`: makes the MathML of a guide's formulas, by Temml."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from headwise.study.authoring.formulas import renew
from headwise.study.errors import GuideError


def main(arguments: list[str] | None = None) -> int:
    """Renew formulas.json; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m headwise.study.authoring", description=__doc__)
    parser.add_argument("guide", type=Path, help="the guide's folder")
    parser.add_argument(
        "--temml", type=Path, help="the unpacked npm package temml; fetched by npm if not given"
    )
    given = parser.parse_args(arguments)
    try:
        counts = renew(given.guide, given.temml)
    except GuideError as error:
        for one in (error, *error.others):
            print(f"headwise: {one}", file=sys.stderr)
        return 2
    print(f"{counts.made} formulas made, {counts.kept} kept, {counts.dropped} no longer used")
    return 0


if __name__ == "__main__":
    sys.exit(main())
