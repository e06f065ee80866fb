"""Write docs/results.md and the study guide's facts about results again, from what is kept of each run in
docs/results.

    python docs/make_results.py

A run is written into the page by `python -m benchmarks.results SECTION RUN`, which needs the run's folder;
this needs nothing but the repository.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results.guide_facts import update
from benchmarks.results.page import write

if __name__ == "__main__":
    print(write())
    print(update())
