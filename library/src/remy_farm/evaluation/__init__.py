"""Evaluators: who simulates what a designer asks for.

An evaluation is a pure function of its request. An evaluator is a transport around it: it may split
a request into tasks, repeat and reorder them, and the outcome is the same, bit for bit.
"""
