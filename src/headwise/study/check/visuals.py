"""Visuals: their data, their script, and what a learner can set."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files

from headwise.study.check.checking import Checking
from headwise.study.content import Input, Visual
from headwise.study.visuals import NAMES, load


def check_visuals(checking: Checking) -> None:
    """The module and the script exist, there are words, and the inputs are those of the module, with the same
    first values."""
    scripts = files("headwise.study") / "static" / "visuals"
    for activity in checking.guide.activities.values():
        if not isinstance(activity, Visual):
            continue
        file = checking.file(activity)
        if not activity.words.strip():
            checking.error(
                "words says nothing: what does somebody miss who can't see it?", file, activity.line
            )
        if not (scripts / f"{activity.module}.js").is_file():
            checking.error(f"there is no script static/visuals/{activity.module}.js", file, activity.line)
        for name, count in Counter(given.name for given in activity.inputs).items():
            if count > 1:
                checking.error(f"{count} inputs have the name {name!r}", file, activity.line)
        for given in activity.inputs:
            _check_input(checking, given, file)
        if activity.data not in NAMES:
            checking.error(
                f"headwise.study.visuals has no {activity.data!r}; it has {', '.join(NAMES)}",
                file,
                activity.line,
            )
            continue
        defaults = load(activity.data).DEFAULTS
        named = {given.name: given for given in activity.inputs}
        for name in defaults.keys() - named.keys():
            checking.error(f"{activity.data} has an input {name!r}: add it", file, activity.line)
        for name, given in named.items():
            if name not in defaults:
                known = ", ".join(defaults) or "none"
                checking.error(f"{activity.data} has no input {name!r}; it has {known}", file, given.line)
            elif given.value != defaults[name]:
                message = (
                    f"{name} begins with {given.value!r}, but with {defaults[name]!r} in {activity.data}"
                )
                checking.error(message, file, given.line)


def _check_input(checking: Checking, given: Input, file: str) -> None:
    if not given.label.strip():
        checking.error(f"the input {given.name!r} has no label", file, given.line)
    if given.kind == "range":
        if given.min is None or given.max is None or not given.min < given.max:
            checking.error(f"the range {given.name!r} needs min and max, min below max", file, given.line)
        elif isinstance(given.value, int | float) and not given.min <= given.value <= given.max:
            checking.error(
                f"{given.name} begins with {given.value}: it must lie from {given.min:g} to {given.max:g}",
                file,
                given.line,
            )
        if given.step is not None and given.step <= 0:
            checking.error(
                f"the range {given.name!r} has the step {given.step:g}: give one above 0", file, given.line
            )
    elif given.kind == "select":
        values = [one["value"] if isinstance(one, dict) and "value" in one else one for one in given.options]
        if not values:
            checking.error(f"the select {given.name!r} has no options", file, given.line)
        elif given.value is not None and given.value not in values:
            checking.error(f"{given.name} begins with {given.value!r}, which is no option", file, given.line)
