"""The checks of a guide: what a reader can trust, a machine has looked at."""

from headwise.study.check.fault import Fault
from headwise.study.check.rules import check_guide

__all__ = ["Fault", "check_guide"]
