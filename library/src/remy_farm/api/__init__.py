"""What `import remy_farm` offers, a chapter each: specifications, tables, designs, scores, runs.

Nothing here decides or measures anything: values of the packages below print themselves, become
data frames and pictures, and are saved and loaded.
"""
