"""Keys and values kept between steps: growing, static and ring caches, and one for a fixed memory."""

from headwise.cache.base import Cache, CacheView
from headwise.cache.cross import CrossCache
from headwise.cache.growing import GrowingCache
from headwise.cache.layers import LayerCaches
from headwise.cache.ring import RingCache
from headwise.cache.static import StaticCache

__all__ = [
    "Cache",
    "CacheView",
    "CrossCache",
    "GrowingCache",
    "LayerCaches",
    "RingCache",
    "StaticCache",
]
