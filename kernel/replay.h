/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Records that the arithmetic is compared by, in user space and in the kernel. The first number of a
 * record is that of the packets of an ACK, and sent, received and RTT in us follow; with 0, sending
 * begins anew; with the largest number, the rule is looked up by the four signals that follow, and
 * applied to a window of REPLAY_WINDOW packets. The answer is the rule, the window, and the
 * interval in 2^-20 us.
 */
#ifndef REMY_REPLAY_H
#define REMY_REPLAY_H

#define REPLAY_WINDOW 500000

static inline void remy_replay(struct remy_state* state, const remy_u64 record[5],
                               remy_u64 answer[3]) {
  if (record[0] == ~0ull) {
    struct remy_search search;
    search.memory[0] = record[1];
    search.memory[1] = record[2];
    search.memory[2] = record[3];
    search.memory[3] = record[4];
    state->window = REPLAY_WINDOW;
    remy_apply(state, remy_find(&search));
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
