"""Outcomes that need not be simulated again, kept as long as there is room."""

from remy_services.stores.cache.guarded import GuardedCache
from remy_services.stores.cache.memory import MemoryCache
from remy_services.stores.cache.opening import open_cache

__all__ = ["GuardedCache", "MemoryCache", "open_cache"]
