"""Driving a designer: one run loop, and the directory of a design on this machine.

`loop` carries requests to an evaluator and outcomes back, whatever keeps the design; `run` does so
in one process, with files, clocks and signals around. The other sink, a store, is the
coordinator's.
"""
