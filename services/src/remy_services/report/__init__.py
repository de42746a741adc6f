"""What a table does, measured in the papers' quantities, and what a design gained, as a page."""
