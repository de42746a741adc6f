"""The classes and functions of `import remy_farm`: specifications, tables, designs, scores, runs.

This package adds no computation to the packages below. It prints, plots, saves and loads their
results, and converts them to data frames.
"""
