/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The parts of Linux's types that remy_congestion.bpf.c uses. libbpf finds each field by name in
 * the BTF of the kernel that loads the program (CO-RE), so the order of fields and the omitted ones
 * do not matter.
 */
#ifndef REMY_KERNEL_H
#define REMY_KERNEL_H

typedef unsigned char __u8;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value)* name

enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6 };

static void* (*bpf_map_lookup_elem)(void* map, const void* key) = (void*)1;
static long (*bpf_loop)(__u32 iterations, void* callback, void* context, __u64 flags) = (void*)181;

enum { TCP_CA_Loss = 4 };
enum { CA_EVENT_TX_START = 0 };
enum { SK_PACING_NONE = 0, SK_PACING_NEEDED = 1 };
enum { TCP_CONG_NON_RESTRICTED = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
  unsigned long sk_pacing_rate;
  unsigned long sk_max_pacing_rate;
  __u32 sk_pacing_status;
};

struct inet_sock {
  struct sock sk;
};

struct inet_connection_sock {
  struct inet_sock icsk_inet;
  __u64 icsk_ca_priv[13];
};

struct tcp_sock {
  struct inet_connection_sock inet_conn;
  __u32 mss_cache;
  __u32 snd_cwnd;
  __u32 snd_cwnd_clamp;
  __u32 snd_ssthresh;
  __u32 srtt_us; /* in units of 1/8 us */
  __u32 rttvar_us;
  __u32 app_limited;
  __u64 tcp_mstamp;
  __u64 first_tx_mstamp;
};

struct rate_sample {
  __u32 acked_sacked;
  _Bool is_app_limited;
  _Bool is_retrans;
};

#pragma clang attribute pop

/* libbpf also matches these members by name and places them where the running kernel has them. */
struct tcp_congestion_ops {
  __u32 (*ssthresh)(struct sock*);
  void (*set_state)(struct sock*, __u8);
  void (*cwnd_event)(struct sock*, int);
  __u32 (*min_tso_segs)(struct sock*);
  void (*cong_control)(struct sock*, __u32, int, const struct rate_sample*);
  __u32 (*undo_cwnd)(struct sock*);
  void (*init)(struct sock*);
  char name[16];
  __u32 flags;
};

#endif
