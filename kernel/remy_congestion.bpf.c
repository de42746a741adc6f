// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * A RemyCC as a TCP congestion control of Linux (6.10 or newer). The table and its arithmetic are
 * in remy_table.h, beside this file. Build it as follows, and load it by `remy-farm kernel run` or
 * by any program that uses libbpf:
 *
 *   clang -O2 -g -target bpf -c remy_congestion.bpf.c -o remy_congestion.bpf.o
 */
#include "remy_kernel.h"

#define REMY_IN_KERNEL
#include "remy_table.h"
#include "replay.h"

#ifndef REMY_NAME
#define REMY_NAME "@NAME@"
#endif

/* Indices of counters; the first REMY_RULES count the uses of each rule. */
enum remy_counter {
  COUNT_ACKS = REMY_RULES,
  COUNT_CLAMPED,       /* windows out of range */
  COUNT_TIMEOUTS,      /* restarts after a retransmission timeout */
  COUNT_IDLE,          /* restarts after an idle period */
  COUNT_APP_LIMITED,   /* ACKs skipped because the application limited the rate */
  COUNT_RETRANSMITTED, /* ACKs skipped because they may be for a retransmission */
  COUNT_SOCKETS,
  COUNTERS,
};

/* For `remy-farm kernel measure --noise`: after the counters, a histogram of RTTs in us above a
 * base. */
#ifdef REMY_NOISE_BASE_US
#define REMY_NOISE_COUNTERS 16384
#else
#define REMY_NOISE_COUNTERS 0
#endif

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, COUNTERS + REMY_NOISE_COUNTERS);
  __type(key, __u32);
  __type(value, __u64);
} remy_counters SEC(".maps");

static inline void count(__u32 counter) {
  __u64* number = bpf_map_lookup_elem(&remy_counters, &counter);
  if (number) {
    *number += 1;
  }
}

/* The state of one socket, in icsk_ca_priv. */
struct remy_socket {
  struct remy_state state;
  __u64 first_ack_us; /* of this on period */
  __u32 is_stale;     /* the next ACK's times say nothing about the network */
};

_Static_assert(sizeof(struct remy_socket) <= 13 * sizeof(__u64), "icsk_ca_priv holds 104 bytes");

static inline struct remy_socket* socket_of(struct sock* sk) {
  return (struct remy_socket*)((struct inet_connection_sock*)sk)->icsk_ca_priv;
}

static inline void set_window_and_pace(struct sock* sk, const struct remy_state* state) {
  struct tcp_sock* tp = (struct tcp_sock*)sk;
  const __u32 window = remy_window(state);
  const __u64 max = sk->sk_max_pacing_rate;
  /* One packet per RTT. A slower pace would be measured as the rate of ACKs, and so slow itself
   * down further and further. */
  const __u64 min = tp->srtt_us ? (__u64)tp->mss_cache * 8000000 / tp->srtt_us + 1 : 1;
  __u64 rate = remy_pacing_rate(state, tp->mss_cache);
  tp->snd_cwnd = window < tp->snd_cwnd_clamp ? window : tp->snd_cwnd_clamp;
  rate = rate < min ? min : rate;
  sk->sk_pacing_rate = rate > max ? max : rate;
}

SEC("struct_ops/remy_init")
int remy_init(unsigned long long* context) {
  struct sock* sk = (struct sock*)context[0];
  struct remy_socket* socket = socket_of(sk);
  remy_start(&socket->state);
  socket->is_stale = 0;
  if (sk->sk_pacing_status == SK_PACING_NONE) {
    sk->sk_pacing_status = SK_PACING_NEEDED;
  }
  set_window_and_pace(sk, &socket->state);
  count(COUNT_SOCKETS);
  return 0;
}

SEC("struct_ops/remy_cong_control")
int remy_cong_control(unsigned long long* context) {
  struct sock* sk = (struct sock*)context[0];
  const struct rate_sample* sample = (const struct rate_sample*)context[3];
  struct tcp_sock* tp = (struct tcp_sock*)sk;
  struct remy_socket* socket = socket_of(sk);
  struct remy_state* state = &socket->state;
  const __u64 received_us = tp->tcp_mstamp;
  /* The time at which the newest packet that this ACK covers was sent. */
  const __u64 sent_us = tp->first_tx_mstamp;
  const __u32 packets = sample->acked_sacked;
  if (packets == 0) {
    return 0;
  }
  count(COUNT_ACKS);
  if (sample->is_retrans) {
    count(COUNT_RETRANSMITTED);
    remy_skip(state, sent_us, received_us);
    return 0;
  }
  if (socket->is_stale) {
    socket->is_stale = 0;
    remy_skip(state, sent_us, received_us);
    return 0;
  }
  if (state->min_rtt_us == 0) {
    socket->first_ack_us = received_us;
  }
  /* Linux marks the whole first window as app-limited, so only later packets are skipped, and only
   * if they came slower than the average. */
  if (sample->is_app_limited && sent_us > socket->first_ack_us && state->min_rtt_us &&
      (remy_elapsed(state->last_received_us, received_us) << REMY_TIME_BITS) / packets >
          state->rec_ewma) {
    count(COUNT_APP_LIMITED);
    remy_skip(state, sent_us, received_us);
    return 0;
  }
#ifdef REMY_NOISE_BASE_US
  {
    const __u64 above_us = remy_elapsed(sent_us + REMY_NOISE_BASE_US, received_us);
    const __u64 last = REMY_NOISE_COUNTERS - 1;
    count((__u32)(COUNTERS + (above_us < last ? above_us : last)));
  }
#endif
  remy_acknowledge(state, sent_us, received_us, remy_elapsed(sent_us, received_us), packets);
  count(state->rule);
  if (state->is_clamped) {
    count(COUNT_CLAMPED);
  }
  set_window_and_pace(sk, state);
  return 0;
}

/* Restarts after a retransmission timeout: all packets in flight are lost, and the measurements are
 * out of date. */
SEC("struct_ops/remy_set_state")
int remy_set_state(unsigned long long* context) {
  struct sock* sk = (struct sock*)context[0];
  if ((__u8)context[1] == TCP_CA_Loss) {
    remy_start(&socket_of(sk)->state);
    count(COUNT_TIMEOUTS);
  }
  return 0;
}

/* Called when data is sent while nothing is in flight. Ends an idle period if the application had
 * no data, but not if pacing or a small window left the path empty. */
SEC("struct_ops/remy_cwnd_event")
int remy_cwnd_event(unsigned long long* context) {
  struct sock* sk = (struct sock*)context[0];
  struct tcp_sock* tp = (struct tcp_sock*)sk;
  struct remy_socket* socket = socket_of(sk);
  if ((int)context[1] != CA_EVENT_TX_START || !tp->app_limited || socket->state.min_rtt_us == 0) {
    return 0;
  }
  if (remy_elapsed(socket->state.last_received_us, tp->tcp_mstamp) >
      (tp->srtt_us >> 3) + (__u64)tp->rttvar_us) {
    /* Idle for longer than a retransmission timeout: a new on period begins. */
    remy_start(&socket->state);
    set_window_and_pace(sk, &socket->state);
    count(COUNT_IDLE);
  } else {
    socket->is_stale = 1;
  }
  return 0;
}

/* Sends single packets unless the pacing rate exceeds one packet per ms. */
SEC("struct_ops/remy_min_tso_segs")
int remy_min_tso_segs(unsigned long long* context) { return 1; }

/* A RemyCC reacts to losses only through its rules, so it never lowers ssthresh. */
SEC("struct_ops/remy_ssthresh")
int remy_ssthresh(unsigned long long* context) {
  return ((struct tcp_sock*)context[0])->snd_ssthresh;
}

SEC("struct_ops/remy_undo_cwnd")
int remy_undo_cwnd(unsigned long long* context) { return ((struct tcp_sock*)context[0])->snd_cwnd; }

#define REMY_OPERATIONS                                                       \
  .init = (void*)remy_init, .cong_control = (void*)remy_cong_control,         \
  .set_state = (void*)remy_set_state, .cwnd_event = (void*)remy_cwnd_event,   \
  .min_tso_segs = (void*)remy_min_tso_segs, .ssthresh = (void*)remy_ssthresh, \
  .undo_cwnd = (void*)remy_undo_cwnd, .name = REMY_NAME

/* The loader registers one of the two: for sockets with CAP_NET_ADMIN only, or for all sockets. */
SEC(".struct_ops")
struct tcp_congestion_ops remy_privileged = {REMY_OPERATIONS};

SEC(".struct_ops")
struct tcp_congestion_ops remy_all_users = {REMY_OPERATIONS, .flags = TCP_CONG_NON_RESTRICTED};

/* For `remy-farm kernel verify`: runs the same arithmetic on a batch of records. */
#define BATCH 1024

struct remy_batch {
  __u64 records[BATCH][5];
  __u64 answers[BATCH][3];
  struct remy_state state;
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct remy_batch);
} remy_batches SEC(".maps");

static int verify_record(__u32 number, void* context) {
  __u32 key = 0;
  struct remy_batch* batch = bpf_map_lookup_elem(&remy_batches, &key);
  const __u64 place = (__u64)number & (BATCH - 1);
  if (!batch) {
    return 1;
  }
  remy_replay(&batch->state, batch->records[place], batch->answers[place]);
  return 0;
}

SEC("syscall")
int remy_verify(void* context) {
  bpf_loop(BATCH, verify_record, 0, 0);
  return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
