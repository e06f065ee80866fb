"""Applications of multi-head attention: data, tokenizer, model, metric and recipe of each."""

from headwise.applications.base import Application, Evaluation
from headwise.applications.errors import DataError
from headwise.applications.registry import MODULES, application_of, find
from headwise.applications.running import train_application

__all__ = [
    "MODULES",
    "Application",
    "DataError",
    "Evaluation",
    "application_of",
    "find",
    "train_application",
]
