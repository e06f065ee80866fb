"""Runs the code that a guide shows, in a process of its own: the blocks of lessons, and the traces of
questions about shapes.

A guide's Python is a program like any other: it runs with the rights of whoever builds the guide. It runs
apart so that what it does to Python (a loop without end, a crash, other random numbers) stays there.
"""

from headwise.study.running.code import Ran, prepare, run_lesson, run_lessons, shape_of
from headwise.study.running.process import LIMIT

__all__ = ["LIMIT", "Ran", "prepare", "run_lesson", "run_lessons", "shape_of"]
