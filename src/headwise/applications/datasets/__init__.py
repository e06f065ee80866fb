"""Data that comes from ordinary packages: fetched by their own clients, written in the documented formats."""

from headwise.applications.datasets.base import Dataset
from headwise.applications.datasets.catalogue import DATASETS, find_dataset, make_dataset

__all__ = ["DATASETS", "Dataset", "find_dataset", "make_dataset"]
