"""From a model that scores the next token to whole outputs: greedy, beam search, sampling."""

from headwise.models.decoding.beam import beam_search, length_penalty
from headwise.models.decoding.ctc import ctc_greedy
from headwise.models.decoding.hypothesis import Hypothesis
from headwise.models.decoding.single import greedy, sample
from headwise.models.decoding.steppers import MemoryStepper, Stepper, TokenStepper
from headwise.models.decoding.support import keep_likely

__all__ = [
    "Hypothesis",
    "MemoryStepper",
    "Stepper",
    "TokenStepper",
    "beam_search",
    "ctc_greedy",
    "greedy",
    "keep_likely",
    "length_penalty",
    "sample",
]
