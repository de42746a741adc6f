/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Records for comparing the table's arithmetic in user space, in the kernel and in the reference.
 * The first number of a record selects what is done:
 *
 *   n       an ACK of n packets: the times sent and received and the RTT follow, in us
 *   0       sending restarts
 *   2^64-1  a rule is looked up by the four signals that follow, and applied to a window of
 *           REPLAY_WINDOW packets
 *
 * The answer is the rule, the window, and the interval in units of 2^-20 us.
 */
#ifndef REMY_REPLAY_H
#define REMY_REPLAY_H

#define REPLAY_WINDOW 500000

static inline void remy_replay(struct remy_state* state, const remy_u64 record[5],
                               remy_u64 answer[3]) {
  if (record[0] == ~0ull) {
    struct remy_lookup lookup;
    lookup.signals[0] = record[1];
    lookup.signals[1] = record[2];
    lookup.signals[2] = record[3];
    lookup.signals[3] = record[4];
    state->window = REPLAY_WINDOW;
    remy_apply(state, remy_find_rule(&lookup));
  } else if (record[0] == 0) {
    remy_start(state);
  } else {
    remy_acknowledge(state, record[1], record[2], record[3], (remy_u32)record[0]);
  }
  answer[0] = state->rule;
  answer[1] = state->window;
  answer[2] = state->interval;
}

#endif
