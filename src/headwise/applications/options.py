"""Options of an evaluation: known ones with their defaults, others refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def take(options: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    """The defaults, with what the options say in their place.

    Raises:
        ValueError: an option that has no default here.
    """
    unknown = sorted(set(options) - set(defaults))
    if unknown:
        known = ", ".join(defaults) or "none"
        raise ValueError(f"there is no option {', '.join(unknown)} here; options are: {known}")
    return {**defaults, **options}
