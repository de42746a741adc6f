"""What a coordinator lets people see of itself: metrics, logs, traces, profiles.

Nothing here changes what a coordinator does. Stores and evaluators are watched by wrappers of the
same interface (`MeasuredStore`, `MeasuredEvaluator`); everything else is read when somebody asks.
"""
