"""The networks of small specifications, as the text that a specification has of them."""

SMALL_NETWORK = """\
network:
  rate_mbps: {uniform: [10, 20]}
  rtt_ms: 100
  senders: {integer_uniform: [1, 2]}
  traffic:
    exponential_time: {mean_ms: 1000}
    mean_off_ms: 1000
"""
