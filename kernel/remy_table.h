/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A RemyCC in integer arithmetic: what a sender does at each ACK. It needs no floating point and no
 * system header. `remy-farm export` writes this file; include it in one translation unit.
 *
 * Times between packets are in units of 2^-20 us, ratios in units of 2^-24, windows in whole
 * packets. A sender keeps one struct remy_state. Call remy_start() when sending begins and
 * remy_acknowledge() at each ACK; remy_window() and remy_pacing_rate() then give the congestion
 * window and the pacing rate. Times come from the caller's clock, in microseconds: use the same
 * clock for the time a packet was sent and the time its ACK arrived.
 */
#ifndef REMY_TABLE_H
#define REMY_TABLE_H

typedef unsigned long long remy_u64;
typedef long long remy_s64;
typedef unsigned int remy_u32;

#define REMY_TIME_BITS 20
#define REMY_RATIO_BITS 24
#define REMY_MULTIPLE_BITS 40 /* of window multiples, and of windows during computation */
#define REMY_UNIT_BITS 28     /* of packets per minimum RTT, and of pacing factors */
#define REMY_SHARE_BITS 30    /* of increments, as a share of packets per minimum RTT */
#define REMY_MAX_WINDOW 1000000u
#define REMY_EWMA_AGE 256u /* packets; younger averages are running means */
#define REMY_MAX_AGE 1048576u
#define REMY_MAX_US ((1ull << 30) - 1) /* longest interval or RTT */

/* An inner node of the octree. It splits space at one threshold for each of the four signals; where
 * it does not split on a signal, the threshold is larger than any value. The index of a child has
 * one bit for each signal that is at or above its threshold. A child >= 0 is another node, and a
 * child < 0 is the bitwise complement of a rule. */
struct remy_node {
  remy_u64 thresholds[4];
  short children[16];
};

/* The action of an absolute rule. The window multiple and the increment are each an integer part
 * and a fraction in units of 2^-64. The multiple is stored times 2^shift, so that a small one keeps
 * all its bits. The interval is in units of 2^-20 us. */
struct remy_absolute {
  remy_u64 multiple;
  remy_u64 multiple_rest;
  remy_u64 shift;
  remy_s64 increment;
  remy_u64 increment_rest;
  remy_u64 interval;
};

/* The action of a scale-free rule. The increment is in units of 2^-30 of the packets per minimum
 * RTT, and the interval in units of 2^-28 of the measured interval between ACKs. */
struct remy_share {
  remy_u64 multiple;
  remy_s64 increment;
  remy_u64 interval;
};

/* In the kernel the table is not const: if the verifier knew the values, it would explore every
 * path through the tree. */
#ifdef REMY_IN_KERNEL
#define REMY_DATA
#else
#define REMY_DATA static const
#endif

/*@TABLE@*/

struct remy_state {
  remy_u64 send_ewma; /* 2^-20 us, like the next two */
  remy_u64 rec_ewma;
  remy_u64 slow_rec_ewma;
  remy_u64 age;      /* packets acknowledged since the first */
  remy_u64 interval; /* minimum time between two packets; 0: none */
  remy_u64 last_sent_us;
  remy_u64 last_received_us;
  remy_u32 min_rtt_us; /* 0 before the first ACK */
  remy_u32 window;     /* packets; may be 0 */
  remy_u32 rule;       /* used last */
  remy_u32 is_clamped; /* whether that rule's window was out of range */
};

struct remy_lookup {
  remy_u64 signals[4];
  remy_s64 node;
};

/* Goes down one level of the tree. Returns 1 at a rule, as bpf_loop() expects. */
static int remy_descend(remy_u32 level, void* context) {
  struct remy_lookup* lookup = (struct remy_lookup*)context;
  const struct remy_node* node = &remy_nodes[(remy_u64)lookup->node & (REMY_NODE_SLOTS - 1)];
  remy_u64 orthant = 0;
  (void)level;
  orthant |= lookup->signals[0] >= node->thresholds[0] ? 1 : 0;
  orthant |= lookup->signals[1] >= node->thresholds[1] ? 2 : 0;
  orthant |= lookup->signals[2] >= node->thresholds[2] ? 4 : 0;
  orthant |= lookup->signals[3] >= node->thresholds[3] ? 8 : 0;
  lookup->node = node->children[orthant & 15];
  return lookup->node < 0;
}

static inline remy_u32 remy_find_rule(struct remy_lookup* lookup) {
  lookup->node = 0;
#ifdef REMY_IN_KERNEL
  bpf_loop(REMY_DEPTH, remy_descend, lookup, 0);
#else
  {
    remy_u32 level;
    for (level = 0; level < REMY_DEPTH; ++level) {
      if (remy_descend(level, lookup)) {
        break;
      }
    }
  }
#endif
  return (remy_u32)(~lookup->node) & (REMY_RULE_SLOTS - 1);
}

/* dividend / divisor in units of 2^-(2 * bits), rounded down, with an integer part of at most
 * `max`. Dividing in two steps keeps it within 64 bits. Both operands are times of at most
 * REMY_MAX_US, and bits is at most 14. */
static inline remy_u64 remy_divide(remy_u64 dividend, remy_u64 divisor, remy_u32 bits,
                                   remy_u64 max) {
  remy_u64 whole = dividend / divisor;
  remy_u64 rest = dividend % divisor;
  remy_u64 high = (rest << bits) / divisor;
  rest = (rest << bits) % divisor;
  if (whole >= max) {
    return max << (2 * bits);
  }
  return whole << (2 * bits) | high << bits | (rest << bits) / divisor;
}

/* a * b / 2^28. The integer part of a times b, and 2^28 * b, must fit in 64 bits. */
static inline remy_u64 remy_multiply(remy_u64 a, remy_u64 b) {
  return (a >> 28) * b + ((a & ((1ull << 28) - 1)) * b >> 28);
}

/* The number of bits of a value. */
static inline remy_u32 remy_bits(remy_u64 value) {
  remy_u32 bits = 0;
  remy_u32 step;
#define REMY_BITS_STEP(width)             \
  step = value >> (width) ? (width) : 0u; \
  bits += step;                           \
  value >>= step;
  REMY_BITS_STEP(32u)
  REMY_BITS_STEP(16u)
  REMY_BITS_STEP(8u)
  REMY_BITS_STEP(4u)
  REMY_BITS_STEP(2u)
  REMY_BITS_STEP(1u)
#undef REMY_BITS_STEP
  return bits + (value ? 1u : 0u);
}

static inline void remy_set_window(struct remy_state* state, remy_s64 window, remy_u64 interval) {
  state->is_clamped = window < 0 || window > (remy_s64)REMY_MAX_WINDOW;
  if (window < 0) {
    window = 0;
  }
  state->window = state->is_clamped && window ? REMY_MAX_WINDOW : (remy_u32)window;
  state->interval = interval;
}

/* Applies an absolute rule exactly as arithmetic in doubles does: there, 0.29 * 100 is below 29 and
 * 0.7 * 10 is 7. The product is rounded to 53 bits. Of the sum only the integer part is used, so it
 * is enough to round up where the sum is within half a unit in the last place of the next integer.
 */
static inline void remy_apply_absolute(struct remy_state* state,
                                       const struct remy_absolute* action) {
  const remy_u64 low = state->window * (action->multiple_rest & 0xffffffffull);
  const remy_u64 high = state->window * (action->multiple_rest >> 32) + (low >> 32);
  remy_u64 rest = high << 32 | (low & 0xffffffffull);
  remy_s64 window = (remy_s64)(state->window * action->multiple + (high >> 32));
  remy_u32 bits = window ? 64 + remy_bits((remy_u64)window) : remy_bits(rest);
  if (bits > 53) {
    const remy_u64 unit = 1ull << ((bits - 53) & 63);
    const remy_u64 beyond = rest & (unit - 1);
    rest -= beyond;
    if (beyond > unit >> 1 || (beyond == unit >> 1 && (rest & unit))) {
      rest += unit;
      window += rest == 0;
    }
  }
  if (action->shift) {
    rest = rest >> (action->shift & 63) | (remy_u64)window << ((64 - action->shift) & 63);
    window >>= action->shift & 63;
  }
  rest += action->increment_rest;
  window += action->increment + (rest < action->increment_rest);
  if (window >= 0 && ~rest >> ((10 + remy_bits((remy_u64)window)) & 63) == 0) {
    ++window;
  }
  remy_set_window(state, window, action->interval);
}

/* Applies the action of a rule that was looked up by measured signals. */
static inline void remy_apply(struct remy_state* state, remy_u32 rule) {
  state->rule = rule;
#if REMY_SCALE_FREE
  {
    const struct remy_share* action = &remy_actions[(remy_u64)rule & (REMY_RULE_SLOTS - 1)];
    const int is_negative = action->increment < 0;
    const remy_u64 packets_per_rtt = remy_divide((remy_u64)state->min_rtt_us << REMY_TIME_BITS,
                                                 state->rec_ewma, REMY_UNIT_BITS / 2, 1ull << 24);
    const remy_u64 product = state->window * action->multiple;
    remy_u64 share = remy_multiply(
        packets_per_rtt, (remy_u64)(is_negative ? -action->increment : action->increment));
    if (share > 1ull << (21 + REMY_SHARE_BITS)) {
      share = 1ull << (21 + REMY_SHARE_BITS);
    }
    share <<= REMY_MULTIPLE_BITS - REMY_SHARE_BITS;
    remy_set_window(
        state,
        is_negative && share > product
            ? -1
            : (remy_s64)((is_negative ? product - share : product + share) >> REMY_MULTIPLE_BITS),
        remy_multiply(state->rec_ewma, action->interval));
  }
#else
  remy_apply_absolute(state, &remy_actions[(remy_u64)rule & (REMY_RULE_SLOTS - 1)]);
#endif
}

static inline void remy_apply_rule(struct remy_state* state, remy_u64 rtt_ratio) {
  struct remy_lookup lookup;
#if REMY_SCALE_FREE
  if (state->rec_ewma == 0) {
    state->rule = REMY_START_RULE;
    remy_apply_absolute(state, &remy_start_action);
    return;
  }
  lookup.signals[0] =
      remy_divide(state->send_ewma, state->rec_ewma, REMY_RATIO_BITS / 2, 1ull << 36);
  lookup.signals[1] = state->age << REMY_RATIO_BITS;
  lookup.signals[2] = rtt_ratio;
  lookup.signals[3] =
      remy_divide(state->slow_rec_ewma, state->rec_ewma, REMY_RATIO_BITS / 2, 1ull << 36);
#else
  lookup.signals[0] = state->send_ewma;
  lookup.signals[1] = state->rec_ewma;
  lookup.signals[2] = rtt_ratio;
  lookup.signals[3] = state->slow_rec_ewma;
#endif
  remy_apply(state, remy_find_rule(&lookup));
}

/* Resets the state when sending begins, before anything is measured. */
static inline void remy_start(struct remy_state* state) {
  state->send_ewma = 0;
  state->rec_ewma = 0;
  state->slow_rec_ewma = 0;
  state->age = 0;
  state->last_sent_us = 0;
  state->last_received_us = 0;
  state->min_rtt_us = 0;
  state->window = 0;
  remy_apply_rule(state, 0);
}

static inline remy_u64 remy_elapsed(remy_u64 from_us, remy_u64 to_us) {
  const remy_u64 elapsed_us = to_us > from_us ? to_us - from_us : 0;
  return elapsed_us > REMY_MAX_US ? REMY_MAX_US : elapsed_us;
}

/* Records the times of a packet without applying a rule. For an ACK whose times say nothing about
 * the network, such as the first after an idle period. */
static inline void remy_skip(struct remy_state* state, remy_u64 sent_us, remy_u64 received_us) {
  state->last_sent_us = sent_us;
  state->last_received_us = received_us;
}

/* The average with a new sample, weighted by packets / age. */
static inline remy_u64 remy_running_mean(remy_u64 average, remy_u64 sample, remy_u64 packets,
                                         remy_u64 age) {
  return ((age - packets) * average + packets * sample + age / 2) / age;
}

/* Updates the averages of the intervals. In a table that uses the age they start as running means,
 * which corrects the bias of an EWMA that starts at zero. */
static inline void remy_update_averages(struct remy_state* state, remy_u64 sent, remy_u64 received,
                                        remy_u64 packets) {
#if REMY_USES_AGE
  const remy_u64 age = state->age;
  if (age < REMY_EWMA_AGE) {
    state->slow_rec_ewma = remy_running_mean(state->slow_rec_ewma, received, packets, age);
    if (age < 8 * packets) {
      state->send_ewma = remy_running_mean(state->send_ewma, sent, packets, age);
      state->rec_ewma = remy_running_mean(state->rec_ewma, received, packets, age);
      return;
    }
  } else {
    state->slow_rec_ewma = (255 * state->slow_rec_ewma + received + 128) >> 8;
  }
#else
  (void)packets;
  state->slow_rec_ewma = (255 * state->slow_rec_ewma + received + 128) >> 8;
#endif
  state->send_ewma = (7 * state->send_ewma + sent + 4) >> 3;
  state->rec_ewma = (7 * state->rec_ewma + received + 4) >> 3;
}

/* Processes an ACK for `packets` packets (0 counts as 1), the newest of them sent at sent_us. */
static inline void remy_acknowledge(struct remy_state* state, remy_u64 sent_us,
                                    remy_u64 received_us, remy_u64 round_trip_us,
                                    remy_u32 packets) {
  const remy_u32 rtt_us =
      (remy_u32)(round_trip_us > REMY_MAX_US ? REMY_MAX_US : (round_trip_us ? round_trip_us : 1));
  remy_u64 rtt_ratio = 0;
  if (packets == 0) {
    packets = 1;
  }
  if (state->min_rtt_us == 0) {
    state->min_rtt_us = rtt_us;
  } else {
    const remy_u64 sent = (remy_elapsed(state->last_sent_us, sent_us) << REMY_TIME_BITS) / packets;
    const remy_u64 received =
        (remy_elapsed(state->last_received_us, received_us) << REMY_TIME_BITS) / packets;
    state->age = state->age + packets < REMY_MAX_AGE ? state->age + packets : REMY_MAX_AGE;
    remy_update_averages(state, sent, received, packets);
    if (rtt_us < state->min_rtt_us) {
      state->min_rtt_us = rtt_us;
    }
    rtt_ratio = rtt_us - state->min_rtt_us <= REMY_DEADBAND_US
                    ? 1ull << REMY_RATIO_BITS
                    : ((remy_u64)rtt_us << REMY_RATIO_BITS) / state->min_rtt_us;
  }
  state->last_sent_us = sent_us;
  state->last_received_us = received_us;
  remy_apply_rule(state, rtt_ratio);
}

/* The congestion window in packets. At least one, or no further ACK would ever come. */
static inline remy_u32 remy_window(const struct remy_state* state) {
  return state->window ? state->window : 1;
}

/* The pacing rate in bytes per second for packets of packet_bytes; the largest integer if packets
 * need not wait. */
static inline remy_u64 remy_pacing_rate(const struct remy_state* state, remy_u32 packet_bytes) {
  if (state->interval == 0) {
    return ~0ull;
  }
  return ((remy_u64)packet_bytes * 1000000 << REMY_TIME_BITS) / state->interval;
}

#endif
