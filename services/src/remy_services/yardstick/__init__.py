"""The yardstick: tables and searches measured on one network model with specimens set apart.

The model is the general-purpose one of "TCP ex Machina" (section 5.1), for which tables were
published: a search is as good as the table that it publishes after so many seconds.
"""
