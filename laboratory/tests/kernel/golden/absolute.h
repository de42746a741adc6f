/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A RemyCC in integers: what a sender does at each ACK, with no floating point and no headers of a
 * system. Written by `remy-farm export`; include it in one translation unit.
 *
 * Times between packets are in 2^-20 us, ratios in 2^-24, windows in whole packets. A sender keeps
 * a struct remy_state: remy_start() begins one, remy_acknowledge() takes an ACK, remy_window() and
 * remy_pacing_rate() say what may be sent. The caller's clock counts microseconds; the same one for
 * when a packet was sent and when its ACK came.
 */
#ifndef REMY_TABLE_H
#define REMY_TABLE_H

typedef unsigned long long remy_u64;
typedef long long remy_s64;
typedef unsigned int remy_u32;

#define REMY_TIME_BITS 20
#define REMY_RATIO_BITS 24
#define REMY_MULTIPLE_BITS 40 /* of window multiples and of windows while they are computed */
#define REMY_UNIT_BITS 28     /* of the packets that the smallest RTT holds, and of paces */
#define REMY_SHARE_BITS 30    /* of increments that are a share of these packets */
#define REMY_MOST_PACKETS 1000000u
#define REMY_GROWN_AGE 256u /* from which averages are what they are without an age */
#define REMY_OLDEST 1048576u
#define REMY_LONGEST_US ((1ull << 30) - 1) /* of intervals and RTTs */

/* Inner nodes divide at a threshold for each of four signals; an axis that is not divided on has
 * one that nothing reaches. Children, by the set of signals that reach theirs, are other nodes or
 * the complements of rules. */
struct remy_node {
  remy_u64 thresholds[4];
  short children[16];
};

/* Multiple and increment of an absolute rule: the integer below, and the rest in 2^-64 of one. The
 * multiple is 2^shift times as large, so that what is small has all of its bits. The interval is in
 * 2^-20 us. */
struct remy_absolute {
  remy_u64 multiple;
  remy_u64 multiple_rest;
  remy_u64 shift;
  remy_s64 increment;
  remy_u64 increment_rest;
  remy_u64 interval;
};

/* Of a scale-free rule the increment is in 2^-30 of the packets that the smallest RTT holds, and the
 * interval in 2^-28 of the measured one. */
struct remy_share {
  remy_u64 multiple;
  remy_s64 increment;
  remy_u64 interval;
};

/* In the kernel the verifier must not know the numbers, or it follows each path through the tree. */
#ifdef REMY_IN_KERNEL
#define REMY_DATA
#else
#define REMY_DATA static const
#endif

/* The table with the SHA-256 a15c0929da23353e3604684c048dd46792bf3341f5b077fa5792b743e363fec9. */
#define REMY_SCALE_FREE 0
#define REMY_LOOKS_AT_AGE 0
#define REMY_RULES 5
#define REMY_RULE_SLOTS 8
#define REMY_NODE_SLOTS 2
#define REMY_DEPTH 2
#define REMY_START_RULE 0
#define REMY_DEADBAND_US 0u

REMY_DATA struct remy_node remy_nodes[REMY_NODE_SLOTS] = {
    {{1572864000ull, 18446744073709551615ull, 17825792ull, 18446744073709551615ull},
     {-1, -2, 0, 0, -3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {{18446744073709551615ull, 0ull, 18446744073709551615ull, 18446744073709551615ull},
     {-4, 0, -5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
};

REMY_DATA struct remy_absolute remy_actions[REMY_RULE_SLOTS] = {
    {0ull, 16602069666338596864ull, 0ull, 2ll, 0ull, 1048576000ull},
    {0ull, 13835058055282163712ull, 0ull, -3ll, 0ull, 262144000ull},
    {1ull, 0ull, 0ull, 1ll, 0ull, 0ull}, {0ull, 0ull, 0ull, 5ll, 0ull, 2097152000ull},
    {1ull, 4611686018427387904ull, 0ull, 0ll, 9223372036854775808ull, 12897484800ull},
};

struct remy_state {
  remy_u64 send_ewma; /* 2^-20 us, as the next two */
  remy_u64 rec_ewma;
  remy_u64 slow_rec_ewma;
  remy_u64 age; /* packets acknowledged after the first */
  remy_u64 interval; /* between two packets, at least; 0: none */
  remy_u64 last_sent_us;
  remy_u64 last_received_us;
  remy_u32 min_rtt_us; /* 0: nothing was acknowledged yet */
  remy_u32 window;     /* packets; may be 0 */
  remy_u32 rule;       /* that was used last */
  remy_u32 is_clamped; /* whether its window was cut to what is allowed */
};

struct remy_search {
  remy_u64 memory[4];
  remy_s64 node;
};

/* A level of the tree; whether a rule is reached. */
static int remy_descend(remy_u32 level, void* context) {
  struct remy_search* search = (struct remy_search*)context;
  const struct remy_node* node = &remy_nodes[(remy_u64)search->node & (REMY_NODE_SLOTS - 1)];
  remy_u64 orthant = 0;
  (void)level;
  orthant |= search->memory[0] >= node->thresholds[0] ? 1 : 0;
  orthant |= search->memory[1] >= node->thresholds[1] ? 2 : 0;
  orthant |= search->memory[2] >= node->thresholds[2] ? 4 : 0;
  orthant |= search->memory[3] >= node->thresholds[3] ? 8 : 0;
  search->node = node->children[orthant & 15];
  return search->node < 0;
}

static inline remy_u32 remy_find(struct remy_search* search) {
  search->node = 0;
#ifdef REMY_IN_KERNEL
  bpf_loop(REMY_DEPTH, remy_descend, search, 0);
#else
  {
    remy_u32 level;
    for (level = 0; level < REMY_DEPTH; ++level) {
      if (remy_descend(level, search)) {
        break;
      }
    }
  }
#endif
  return (remy_u32)(~search->node) & (REMY_RULE_SLOTS - 1);
}

/* dividend / divisor in 2^-(2 bits), rounded down; 64 bits hold it because it is made in two steps.
 * Both are times of at most REMY_LONGEST_US, bits at most 14. At most `most` as an integer. */
static inline remy_u64 remy_quotient(remy_u64 dividend, remy_u64 divisor, remy_u32 bits,
                                     remy_u64 most) {
  remy_u64 whole = dividend / divisor;
  remy_u64 rest = dividend % divisor;
  remy_u64 high = (rest << bits) / divisor;
  rest = (rest << bits) % divisor;
  if (whole >= most) {
    return most << (2 * bits);
  }
  return whole << (2 * bits) | high << bits | (rest << bits) / divisor;
}

/* a * b / 2^28, where a's integer part times b, and 2^28 times b, fit in 64 bits. */
static inline remy_u64 remy_product(remy_u64 a, remy_u64 b) {
  return (a >> 28) * b + ((a & ((1ull << 28) - 1)) * b >> 28);
}

/* How many bits a number has. */
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

static inline void remy_set(struct remy_state* state, remy_s64 window, remy_u64 interval) {
  state->is_clamped = window < 0 || window > (remy_s64)REMY_MOST_PACKETS;
  if (window < 0) {
    window = 0;
  }
  state->window = state->is_clamped && window ? REMY_MOST_PACKETS : (remy_u32)window;
  state->interval = interval;
}

/* The window as doubles have it, to the last bit: 0.29 * 100 is below 29 there, and 0.7 * 10 is 7.
 * The product is rounded to 53 bits; of the sum it only matters whether it comes to the next
 * integer, which is nearer from half a unit of what 53 bits have below it (and even). */
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
  remy_set(state, window, action->interval);
}

/* The action of a rule that was found by what is measured. */
static inline void remy_apply(struct remy_state* state, remy_u32 rule) {
  state->rule = rule;
#if REMY_SCALE_FREE
  {
    const struct remy_share* action = &remy_actions[(remy_u64)rule & (REMY_RULE_SLOTS - 1)];
    const int is_negative = action->increment < 0;
    const remy_u64 held = remy_quotient((remy_u64)state->min_rtt_us << REMY_TIME_BITS,
                                        state->rec_ewma, REMY_UNIT_BITS / 2, 1ull << 24);
    const remy_u64 product = state->window * action->multiple;
    remy_u64 share =
        remy_product(held, (remy_u64)(is_negative ? -action->increment : action->increment));
    if (share > 1ull << (21 + REMY_SHARE_BITS)) {
      share = 1ull << (21 + REMY_SHARE_BITS);
    }
    share <<= REMY_MULTIPLE_BITS - REMY_SHARE_BITS;
    remy_set(state,
             is_negative && share > product
                 ? -1
                 : (remy_s64)((is_negative ? product - share : product + share) >>
                              REMY_MULTIPLE_BITS),
             remy_product(state->rec_ewma, action->interval));
  }
#else
  remy_apply_absolute(state, &remy_actions[(remy_u64)rule & (REMY_RULE_SLOTS - 1)]);
#endif
}

static inline void remy_apply_rule(struct remy_state* state, remy_u64 rtt_ratio) {
  struct remy_search search;
#if REMY_SCALE_FREE
  if (state->rec_ewma == 0) {
    state->rule = REMY_START_RULE;
    remy_apply_absolute(state, &remy_start_action);
    return;
  }
  search.memory[0] =
      remy_quotient(state->send_ewma, state->rec_ewma, REMY_RATIO_BITS / 2, 1ull << 36);
  search.memory[1] = state->age << REMY_RATIO_BITS;
  search.memory[2] = rtt_ratio;
  search.memory[3] =
      remy_quotient(state->slow_rec_ewma, state->rec_ewma, REMY_RATIO_BITS / 2, 1ull << 36);
#else
  search.memory[0] = state->send_ewma;
  search.memory[1] = state->rec_ewma;
  search.memory[2] = rtt_ratio;
  search.memory[3] = state->slow_rec_ewma;
#endif
  remy_apply(state, remy_find(&search));
}

/* Sending begins, and nothing is known. */
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
  return elapsed_us > REMY_LONGEST_US ? REMY_LONGEST_US : elapsed_us;
}

/* Times of a packet that tell nothing of the network, as after an idle while: the next interval
 * begins here, and no rule is used. */
static inline void remy_skip(struct remy_state* state, remy_u64 sent_us, remy_u64 received_us) {
  state->last_sent_us = sent_us;
  state->last_received_us = received_us;
}

/* An average with a new sample, which it takes to a share of `packets` / `age`. */
static inline remy_u64 remy_mean(remy_u64 average, remy_u64 sample, remy_u64 packets,
                                 remy_u64 age) {
  return ((age - packets) * average + packets * sample + age / 2) / age;
}

/* Averages of a table that looks at the age are means while they are young. */
static inline void remy_average(struct remy_state* state, remy_u64 sent, remy_u64 received,
                                remy_u64 packets) {
#if REMY_LOOKS_AT_AGE
  const remy_u64 age = state->age;
  if (age < REMY_GROWN_AGE) {
    state->slow_rec_ewma = remy_mean(state->slow_rec_ewma, received, packets, age);
    if (age < 8 * packets) {
      state->send_ewma = remy_mean(state->send_ewma, sent, packets, age);
      state->rec_ewma = remy_mean(state->rec_ewma, received, packets, age);
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

/* An ACK for `packets` (at least one), of which the newest was sent at sent_us. */
static inline void remy_acknowledge(struct remy_state* state, remy_u64 sent_us,
                                    remy_u64 received_us, remy_u64 round_trip_us,
                                    remy_u32 packets) {
  const remy_u32 rtt_us =
      (remy_u32)(round_trip_us > REMY_LONGEST_US ? REMY_LONGEST_US
                                                 : (round_trip_us ? round_trip_us : 1));
  remy_u64 rtt_ratio = 0;
  if (packets == 0) {
    packets = 1;
  }
  if (state->min_rtt_us == 0) {
    state->min_rtt_us = rtt_us;
  } else {
    const remy_u64 sent =
        (remy_elapsed(state->last_sent_us, sent_us) << REMY_TIME_BITS) / packets;
    const remy_u64 received =
        (remy_elapsed(state->last_received_us, received_us) << REMY_TIME_BITS) / packets;
    state->age = state->age + packets < REMY_OLDEST ? state->age + packets : REMY_OLDEST;
    remy_average(state, sent, received, packets);
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

/* Packets that may be in flight: at least one, or nothing would ever be heard again. */
static inline remy_u32 remy_window(const struct remy_state* state) {
  return state->window ? state->window : 1;
}

/* Bytes a second at which packets of so many bytes leave; the largest number where they need not
 * wait. */
static inline remy_u64 remy_pacing_rate(const struct remy_state* state, remy_u32 packet_bytes) {
  if (state->interval == 0) {
    return ~0ull;
  }
  return ((remy_u64)packet_bytes * 1000000 << REMY_TIME_BITS) / state->interval;
}

#endif
