"""The `network` section of small specifications, as YAML text."""

SMALL_NETWORK = """\
network:
  rate_mbps: {uniform: [10, 20]}
  rtt_ms: 100
  senders: {integer_uniform: [1, 2]}
  traffic:
    exponential_time: {mean_ms: 1000}
    mean_off_ms: 1000
"""
