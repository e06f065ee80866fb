"""Observers: what can be said of a head, block by block."""

from headwise.observers.base import Block, Observer
from headwise.observers.keys import KeyMass, MaxWeight, Peak, Top, TopKeys
from headwise.observers.maps import Map
from headwise.observers.observations import Observations
from headwise.observers.places import Mass, Offset
from headwise.observers.rows import Distance, Entropy, LogSumExp, Spread
from headwise.observers.weights import Weights

__all__ = [
    "Block",
    "Distance",
    "Entropy",
    "KeyMass",
    "LogSumExp",
    "Map",
    "Mass",
    "MaxWeight",
    "Observations",
    "Observer",
    "Offset",
    "Peak",
    "Spread",
    "Top",
    "TopKeys",
    "Weights",
]
