"""The parameters of the models of table 3, counted in models that are really built."""

from __future__ import annotations

from functools import lru_cache

from headwise.models.parameters import (
    PAPER_VOCABULARY,
    ParameterCounts,
    common_vocabularies,
    count_row,
    fitting_vocabularies,
)
from headwise.models.table3 import TABLE_3, find_row
from headwise.study.computed.attention import attention_blocks, attention_parameters


def layers_parameters(row: str) -> int:
    """Parameters of all layers of a row of table 3, with the biases of feed-forward networks and the norms,
    without embeddings."""
    return _counted(row).layers


def layers_weights(row: str) -> int:
    """The same, matrices alone."""
    config = find_row(row).config(PAPER_VOCABULARY)
    attention = attention_parameters(config.d_model, config.num_heads, config.d_k, config.d_v)
    matrices = 2 * config.d_model * config.d_ff
    layers = config.num_layers
    return attention_blocks(layers) * attention + 2 * layers * matrices


def model_parameters(row: str, vocabulary: int = PAPER_VOCABULARY) -> int:
    """Parameters of a row of table 3, with one embedding matrix of so many tokens."""
    return _counted(row, vocabulary).total


def parameter_difference(row: str, other: str, vocabulary: int = PAPER_VOCABULARY) -> int:
    """How many parameters a row of table 3 has more than another."""
    return model_parameters(row, vocabulary) - model_parameters(other, vocabulary)


def fitting_vocabulary_low(row: str | None = None) -> int:
    """The smallest vocabulary for which a row of table 3 has the printed number of parameters; without a row,
    for which all rows but "big" have."""
    return _fitting(row)[0]


def fitting_vocabulary_high(row: str | None = None) -> int:
    """The largest such vocabulary."""
    return _fitting(row)[1]


@lru_cache(maxsize=128)
def _counted(row: str, vocabulary: int = PAPER_VOCABULARY) -> ParameterCounts:
    return count_row(find_row(row), vocabulary)


@lru_cache(maxsize=32)
def _fitting(row: str | None) -> tuple[int, int]:
    if row is None:
        return common_vocabularies()
    found = fitting_vocabularies(find_row(row))
    if found is None:
        printed = ", ".join(one.name for one in TABLE_3 if one.parameters is not None)
        raise ValueError(f"the paper prints no number of parameters for {row!r}; it does for {printed}")
    return found
