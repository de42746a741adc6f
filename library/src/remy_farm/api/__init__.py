"""The classes and functions of `import remy_farm`: specifications, tables, designs, scores, runs.

Nothing here decides or measures anything: values of the packages below print themselves, become
data frames and pictures, and are saved and loaded.
"""
