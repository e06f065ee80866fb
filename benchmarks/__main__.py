"""All programs one after the other: the short set, or all of it into the documentation.

python -m benchmarks                                the short set: a few minutes
python -m benchmarks forward options                of these programs
python -m benchmarks --write docs/benchmarks.md     everything, and the document's tables written again
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.document import write
from benchmarks.program import LEGEND, Program, add_arguments, chosen

NAMES = (
    "native",
    "forward",
    "backward",
    "options",
    "observations",
    "module",
    "decode",
    "training",
    "decoding",
)


def programs(names: Sequence[str]) -> list[Program]:
    return [importlib.import_module(f"benchmarks.{name}").PROGRAM for name in names or NAMES]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Compare headwise with its peers."
    )
    parser.add_argument(
        "programs", nargs="*", metavar="PROGRAM", help=f"some of {', '.join(NAMES)}; default: all"
    )
    add_arguments(parser, size="short, or full with --write")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables into this document")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.programs if name not in NAMES]
    if unknown:
        parser.error(f"no program is called {unknown[0]!r}: choose of {', '.join(NAMES)}")
    size, threads = chosen(given, size="full" if given.write else "short")
    found = []
    print(LEGEND)
    for program in programs(given.programs):
        report = program.run(size, threads, given.only)
        print("\n" + "\n".join(report.machine) + "\n\n" + report.text(), flush=True)
        found.append(report.plain())
        if given.write is not None:
            write(given.write, report, threads)
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
