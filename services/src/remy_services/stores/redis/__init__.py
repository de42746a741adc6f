"""Stores on a Redis server."""
