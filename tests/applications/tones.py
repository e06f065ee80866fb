"""Digits as tones, and a recipe that learns them in seconds."""

import math

import torch

RATE = 2000
TINY = (
    "bands=16",
    "layers=1",
    "decoder_layers=1",
    "d_model=32",
    "d_ff=64",
    "heads=2",
    "dropout=0",
    "joined=2",
    "max_frames=500",
    "disturbance.bands=0",
    "disturbance.frames=0",
    "recipe.rate=3e-3",
    "warmup=20",
    "steps=260",
    "validate_every=260",
    "validation_strings=20",
)


def tone(digit, chance, rate=RATE):
    """A digit as a tone of its own pitch between two quiet stretches, in a little noise: 0.2 to 0.3 seconds.

    (Features are normalised over each sound: a tone without its beginning and end would be no event.)
    """
    loud, quiet = round(chance.uniform(0.1, 0.2) * rate), round(0.05 * rate)
    sound = 0.4 * torch.sin(2 * math.pi * (200 + 130 * digit) * torch.arange(loud) / rate)
    sound = torch.cat((torch.zeros(quiet), sound, torch.zeros(quiet)))
    noise = torch.randn(len(sound), generator=torch.Generator().manual_seed(chance.getrandbits(32)))
    return sound + 0.02 * noise
