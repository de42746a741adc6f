"""Telemetry of a coordinator: metrics, logs, traces and profiles.

Nothing here changes a coordinator's behaviour. Stores and evaluators are wrapped by `MeasuredStore`
and `MeasuredEvaluator`; all other metrics are read when they are scraped.
"""
