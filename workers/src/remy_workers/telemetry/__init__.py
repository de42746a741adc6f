"""What a worker lets people see of itself: metrics, logs, traces."""
