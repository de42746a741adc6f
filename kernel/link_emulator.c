/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A link between two network namespaces: a TUN device in each, and between them a queue, a rate, a
 * delay, loss and jitter, in real time.
 *
 *   link_emulator SENDERS RECEIVERS RATE_BPS DELAY_US QUEUE_PACKETS LOSS JITTER_US SEED
 *
 * SENDERS and RECEIVERS are names of namespaces, where the devices are "remy0". Packets from SENDERS
 * wait in the queue, take their bytes at the rate, are lost with the probability LOSS, and arrive
 * after half of the delay; what comes back takes the other half, and an exponential time more with
 * the mean JITTER_US, without overtaking. Prints "ready" when the devices are there; ends when
 * standard input does, and then prints what it counted as one JSON object: by flow (the sender's
 * port), and how late it was itself.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { kSlots = 1 << 14, kBytes = 2048, kFlows = 256, kLateBuckets = 4096 };

struct packet {
  int64_t entered_ns;
  int64_t leaves_queue_ns;
  int64_t arrives_ns;
  int length;
  unsigned char data[kBytes];
};

/* Packets on their way in one direction, in the order in which they arrive. */
struct pipe_state {
  struct packet* slots;
  uint64_t first;   /* that has not arrived */
  uint64_t waiting; /* the first that has not left the queue */
  uint64_t end;
};

struct flow {
  unsigned port;
  uint64_t packets, bytes, drops, losses;
  double rtt_us; /* the sum over packets: queue, rate and delay */
};

static struct flow flows[kFlows];
static uint64_t late[kLateBuckets]; /* by 10 us */
static uint64_t overruns;
static uint64_t random_state;

static void fail(const char* what) {
  fprintf(stderr, "link_emulator: %s: %s\n", what, strerror(errno));
  exit(1);
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* SplitMix64; in (0, 1]. */
static double draw(void) {
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53 + 0x1p-54;
}

static int open_tun(const char* namespace) {
  char path[256];
  struct ifreq request;
  int place, device;
  snprintf(path, sizeof path, "/run/netns/%s", namespace);
  place = open(path, O_RDONLY | O_CLOEXEC);
  if (place < 0 || setns(place, CLONE_NEWNET) < 0) {
    fail(path);
  }
  close(place);
  device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (device < 0) {
    fail("/dev/net/tun");
  }
  memset(&request, 0, sizeof request);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  strcpy(request.ifr_name, "remy0");
  if (ioctl(device, TUNSETIFF, &request) < 0) {
    fail("remy0");
  }
  return device;
}

/* The flow of a TCP packet of IPv4, by the port at `offset` of its header (0: source). */
static struct flow* flow_of(const unsigned char* data, int length, int offset) {
  const int header = (data[0] & 15) * 4;
  unsigned port;
  if (length < header + 4 || data[0] >> 4 != 4 || data[9] != 6) {
    return NULL;
  }
  port = (unsigned)data[header + offset] << 8 | data[header + offset + 1];
  for (int i = 0; i < kFlows; ++i) {
    if (flows[i].port == port || flows[i].port == 0) {
      flows[i].port = port;
      return &flows[i];
    }
  }
  return NULL;
}

static void deliver(struct pipe_state* pipe, int device, int64_t now, int is_forward,
                    int64_t back_ns) {
  while (pipe->first < pipe->end) {
    struct packet* packet = &pipe->slots[pipe->first % kSlots];
    int64_t lateness_us;
    if (packet->arrives_ns > now) {
      break;
    }
    lateness_us = (now - packet->arrives_ns) / 1000;
    ++late[lateness_us / 10 < kLateBuckets ? lateness_us / 10 : kLateBuckets - 1];
    /* EIO: the device is not up yet. */
    if (write(device, packet->data, (size_t)packet->length) < 0 && errno != EAGAIN &&
        errno != EIO) {
      fail("writing a packet");
    }
    if (is_forward) {
      struct flow* flow = flow_of(packet->data, packet->length, 0);
      if (flow != NULL && packet->length > 100) {
        ++flow->packets;
        flow->bytes += (uint64_t)packet->length;
        flow->rtt_us += (double)(packet->arrives_ns - packet->entered_ns + back_ns) / 1000;
      }
    }
    ++pipe->first;
  }
}

static struct packet* new_packet(struct pipe_state* pipe) {
  if (pipe->end - pipe->first >= kSlots) {
    ++overruns;
    return NULL;
  }
  return &pipe->slots[pipe->end % kSlots];
}

static double late_percentile_us(double share) {
  uint64_t total = 0, seen = 0;
  for (int i = 0; i < kLateBuckets; ++i) {
    total += late[i];
  }
  for (int i = 0; i < kLateBuckets; ++i) {
    seen += late[i];
    if (total > 0 && (double)seen >= share * (double)total) {
      return (i + 1) * 10;
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  struct pipe_state forward = {0}, back = {0};
  struct pollfd polled[3];
  int64_t link_free_ns = 0, last_back_ns = 0;
  static unsigned char nowhere[kBytes];
  if (argc != 9) {
    fprintf(stderr, "link_emulator: 8 arguments are needed; its source names them\n");
    return 2;
  }
  const double rate_bps = atof(argv[3]);
  const int64_t delay_ns = (int64_t)(atof(argv[4]) * 1000);
  const uint64_t queue_packets = strtoull(argv[5], NULL, 10);
  const double loss = atof(argv[6]), jitter_us = atof(argv[7]);
  const int64_t there_ns = delay_ns / 2, back_ns = delay_ns - there_ns;
  random_state = strtoull(argv[8], NULL, 10);

  /* Whoever started it may be killed. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGINT, SIG_IGN);
  const int senders = open_tun(argv[1]);
  const int receivers = open_tun(argv[2]);
  forward.slots = calloc(kSlots, sizeof(struct packet));
  back.slots = calloc(kSlots, sizeof(struct packet));
  if (forward.slots == NULL || back.slots == NULL) {
    fail("memory");
  }
  const struct sched_param priority = {.sched_priority = 50};
  const int is_real_time = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  printf("ready\n");
  fflush(stdout);

  polled[0] = (struct pollfd){senders, POLLIN, 0};
  polled[1] = (struct pollfd){receivers, POLLIN, 0};
  polled[2] = (struct pollfd){STDIN_FILENO, POLLIN, 0};
  for (;;) {
    int64_t next_ns = INT64_MAX, now = now_ns();
    if (forward.first < forward.end) {
      next_ns = forward.slots[forward.first % kSlots].arrives_ns;
    }
    if (back.first < back.end && back.slots[back.first % kSlots].arrives_ns < next_ns) {
      next_ns = back.slots[back.first % kSlots].arrives_ns;
    }
    if (next_ns > now) {
      const int64_t left = next_ns == INT64_MAX ? 100000000 : next_ns - now;
      const struct timespec wait = {left / 1000000000, left % 1000000000};
      ppoll(polled, 3, &wait, NULL);
      if (polled[2].revents != 0) {
        break;
      }
    }
    now = now_ns();
    deliver(&forward, receivers, now, 1, back_ns);
    deliver(&back, senders, now, 0, 0);
    for (int i = 0; i < 64; ++i) {
      struct packet* packet = new_packet(&forward);
      const ssize_t length = read(senders, packet ? packet->data : nowhere, kBytes);
      struct flow* flow;
      if (length <= 0) {
        break;
      }
      now = now_ns();
      while (forward.waiting < forward.end &&
             forward.slots[forward.waiting % kSlots].leaves_queue_ns <= now) {
        ++forward.waiting;
      }
      flow = flow_of(packet ? packet->data : nowhere, (int)length, 0);
      if (packet == NULL || forward.end - forward.waiting > queue_packets) {
        if (flow != NULL) {
          ++flow->drops;
        }
        continue;
      }
      if (link_free_ns < now) {
        link_free_ns = now;
      }
      packet->entered_ns = now;
      packet->length = (int)length;
      link_free_ns += (int64_t)((double)length * 8e9 / rate_bps);
      packet->leaves_queue_ns = link_free_ns;
      packet->arrives_ns = link_free_ns + there_ns;
      if (loss > 0 && draw() <= loss) {
        /* It has used the link. */
        if (flow != NULL) {
          ++flow->losses;
        }
        continue;
      }
      ++forward.end;
    }
    for (int i = 0; i < 64; ++i) {
      struct packet* packet = new_packet(&back);
      const ssize_t length = read(receivers, packet ? packet->data : nowhere, kBytes);
      if (length <= 0) {
        break;
      }
      if (packet == NULL) {
        continue;
      }
      packet->length = (int)length;
      packet->entered_ns = now_ns();
      packet->arrives_ns = packet->entered_ns + back_ns;
      if (jitter_us > 0) {
        packet->arrives_ns += (int64_t)(-log(draw()) * jitter_us * 1000);
      }
      if (packet->arrives_ns < last_back_ns) {
        packet->arrives_ns = last_back_ns;
      }
      last_back_ns = packet->arrives_ns;
      ++back.end;
    }
  }

  printf("{\"real_time\": %s, \"overruns\": %llu, \"late_us\": {\"0.5\": %.0f, \"0.99\": %.0f, "
         "\"0.999\": %.0f}, \"flows\": [",
         is_real_time ? "true" : "false", (unsigned long long)overruns, late_percentile_us(0.5),
         late_percentile_us(0.99), late_percentile_us(0.999));
  for (int i = 0; i < kFlows && flows[i].port != 0; ++i) {
    printf("%s{\"port\": %u, \"packets\": %llu, \"bytes\": %llu, \"drops\": %llu, \"losses\": %llu, "
           "\"mean_rtt_ms\": %.6f}",
           i ? ", " : "", flows[i].port, (unsigned long long)flows[i].packets,
           (unsigned long long)flows[i].bytes, (unsigned long long)flows[i].drops,
           (unsigned long long)flows[i].losses,
           flows[i].packets ? flows[i].rtt_us / (double)flows[i].packets / 1000 : 0.0);
  }
  printf("]}\n");
  return 0;
}
