"""Table 1: what a layer costs for n positions of width d."""

from __future__ import annotations


def self_attention_products(n: int, d: int) -> int:
    """n^2 d"""
    return n * n * d


def recurrent_products(n: int, d: int) -> int:
    """n d^2"""
    return n * d * d


def convolution_products(n: int, d: int, k: int) -> int:
    """k n d^2"""
    return k * n * d * d


def separable_convolution_products(n: int, d: int, k: int) -> int:
    """k n d + n d^2"""
    return k * n * d + n * d * d


def restricted_products(n: int, d: int, r: int) -> int:
    """r n d"""
    return r * n * d


def crossover_length(d: int) -> int:
    """The length at which self-attention costs as much as recurrence: n = d."""
    return d


def convolution_layers(n: int, k: int) -> int:
    """Contiguous kernels of width k that join any two of n positions: each layer lets k - 1 more positions
    in, so ceil((n - 1) / (k - 1)); the paper writes O(n / k)."""
    return -(-(n - 1) // (k - 1))


def dilated_layers(n: int, k: int) -> int:
    """The same with dilated kernels, each layer k times as wide as the one below: log_k n, rounded up."""
    layers, reached = 0, 1
    while reached < n:
        layers, reached = layers + 1, reached * k
    return layers


def restricted_path(n: int, r: int) -> int:
    """Layers that join any two of n positions where each sees r: n / r, rounded up."""
    return -(-n // r)
