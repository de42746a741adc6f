/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Emulates a link between two network namespaces in real time: a TUN device in each namespace, and
 * between them a queue, a rate, a delay, loss and jitter.
 *
 *   link_emulator SENDERS RECEIVERS RATE_BPS DELAY_US QUEUE_PACKETS LOSS JITTER_US SEED
 *     [trace ns2|mahimahi|cellsim again|ends FILE]
 *     [hold periodic PERIOD_US | hold batches PACKETS WAIT_US | hold random LONGEST_US PROBABILITY]
 *
 * SENDERS and RECEIVERS are names of namespaces; the device in each is "remy0". A packet from
 * SENDERS waits in the queue, is transmitted at the rate, is lost with the probability LOSS, and
 * arrives after half of the delay. Packets in the other direction take the other half of the delay
 * plus an exponentially distributed time with the mean JITTER_US, and are not reordered.
 *
 * A trace replaces the rate. Its file has a whole number of ms on every line: the times, since the
 * first packet, of the link's opportunities to deliver. At its end the trace repeats or the link
 * ends. docs/reference/networks.md defines the semantics of an opportunity and of holds, which
 * delay packets that have left the link.
 *
 * The program prints "ready" when the devices exist. When standard input ends, it prints one JSON
 * object with the counters of each flow (by the sender's port) and with how late the program
 * delivered packets, and exits.
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

/* The packets in flight in one direction, in order of arrival. */
struct pipe_state {
  struct packet* slots;
  uint64_t first;   /* the oldest packet that has not arrived */
  uint64_t waiting; /* the oldest packet still in the queue */
  uint64_t end;     /* one behind the newest packet */
};

/* The semantics of a trace; kRate if the link has a rate. */
enum semantics { kRate, kNs2, kMahimahi, kCellsim };

struct link_state {
  enum semantics semantics;
  double rate_bps;
  int64_t free_ns;  /* when the link takes the next packet from its queue */
  int64_t began_ns; /* start of the trace: arrival of the first packet */
  int64_t* opportunities_ns;
  uint64_t count, next;
  int64_t round_ns; /* start of the current repetition of the trace */
  int ends;
  int64_t left_bytes; /* unused bytes of the current opportunity */
};

enum holding { kNothing, kPeriodic, kBatches, kRandom };

struct hold_state {
  enum holding kind;
  int64_t time_ns; /* the period, the longest wait, or the longest hold */
  uint64_t packets;
  double probability;
  uint64_t held;      /* packets of the incomplete batch */
  int64_t release_ns; /* latest release of the batch; or release of the previous packet */
};

static const int64_t kNever = INT64_MAX / 4;

struct flow {
  unsigned port;
  uint64_t packets, bytes, drops, losses;
  double rtt_us; /* sum over packets of queueing, transmission and delay */
  int is_reset;  /* the sender has reset it; later packets do not count */
};

static struct flow flows[kFlows];
static uint64_t late[kLateBuckets]; /* histogram in buckets of 10 us */
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

/* A SplitMix64 draw in (0, 1]. */
static double draw(void) {
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53 + 0x1p-54;
}

static int open_tun(const char* namespace) {
  char path[256];
  struct ifreq request;
  int net_namespace, device;
  snprintf(path, sizeof path, "/run/netns/%s", namespace);
  net_namespace = open(path, O_RDONLY | O_CLOEXEC);
  if (net_namespace < 0 || setns(net_namespace, CLONE_NEWNET) < 0) {
    fail(path);
  }
  close(net_namespace);
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

/* The flow of a TCP/IPv4 packet, by the port at `offset` in its TCP header (0: source). */
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
                    int64_t backward_ns) {
  while (pipe->first < pipe->end) {
    struct packet* packet = &pipe->slots[pipe->first % kSlots];
    int64_t lateness_us;
    if (packet->arrives_ns > now) {
      break;
    }
    lateness_us = (now - packet->arrives_ns) / 1000;
    ++late[lateness_us / 10 < kLateBuckets ? lateness_us / 10 : kLateBuckets - 1];
    /* EIO means that the device is not up yet. */
    if (write(device, packet->data, (size_t)packet->length) < 0 && errno != EAGAIN &&
        errno != EIO) {
      fail("writing a packet");
    }
    if (is_forward) {
      struct flow* flow = flow_of(packet->data, packet->length, 0);
      if (flow != NULL && packet->length > 100 && !flow->is_reset) {
        ++flow->packets;
        flow->bytes += (uint64_t)packet->length;
        flow->rtt_us += (double)(packet->arrives_ns - packet->entered_ns + backward_ns) / 1000;
      }
    }
    ++pipe->first;
  }
}

/* Returns 1 if a TCP/IPv4 packet has the RST flag. */
static int has_rst(const unsigned char* data, int length) {
  const int flags = (data[0] & 15) * 4 + 13;
  return flags < length && (data[flags] & 4) != 0;
}

static int64_t next_opportunity(const struct link_state* link) {
  return link->next == link->count
             ? kNever
             : link->began_ns + link->round_ns + link->opportunities_ns[link->next];
}

static void use_opportunity(struct link_state* link) {
  if (++link->next == link->count && !link->ends) {
    link->round_ns += link->opportunities_ns[link->count - 1];
    link->next = 0;
  }
}

static int64_t begin_opportunity(struct link_state* link) {
  const int64_t at_ns = next_opportunity(link);
  if (at_ns < kNever) {
    use_opportunity(link);
  }
  link->left_bytes = link->semantics == kMahimahi ? 1504 : 1500;
  return at_ns;
}

/* The time at which a packet that enters the queue at at_ns has left the link; *taken_ns is the
 * time at which it leaves the queue. It can be computed on arrival because the queue is FIFO. */
static int64_t leaves_link(struct link_state* link, int64_t at_ns, int64_t bytes,
                           int64_t* taken_ns) {
  int64_t left_ns;
  if (link->semantics == kRate || link->semantics == kNs2) {
    if (link->free_ns < at_ns) {
      link->free_ns = at_ns;
    }
    if (link->semantics == kRate) {
      link->free_ns += (int64_t)((double)bytes * 8e9 / link->rate_bps);
    } else {
      while (next_opportunity(link) < link->free_ns) {
        use_opportunity(link);
      }
      link->free_ns = next_opportunity(link);
      if (link->free_ns < kNever) {
        use_opportunity(link);
      }
    }
    /* The packet counts as waiting until it has left the link. main() adds one packet to the
     * queue's limit for it. */
    *taken_ns = link->free_ns;
    return link->free_ns;
  }
  if (link->semantics == kMahimahi) {
    bytes += 4;
  }
  if (link->free_ns <= at_ns) {
    while (next_opportunity(link) < at_ns ||
           (link->semantics == kMahimahi && next_opportunity(link) == at_ns)) {
      use_opportunity(link);
    }
    link->free_ns = begin_opportunity(link);
  }
  left_ns = *taken_ns = link->free_ns;
  while (bytes > link->left_bytes && left_ns < kNever) {
    bytes -= link->left_bytes;
    left_ns = begin_opportunity(link);
  }
  link->left_bytes -= bytes;
  link->free_ns = link->left_bytes > 0 ? left_ns : begin_opportunity(link);
  return left_ns;
}

/* Sets the arrival time of the newest packet of a pipe, which left the link at left_ns: it is
 * delayed by the hold, and then by forward_ns. If it completes a batch, the whole batch arrives
 * then.
 */
static void release(struct hold_state* hold, struct pipe_state* pipe, const struct link_state* link,
                    int64_t left_ns, int64_t forward_ns) {
  struct packet* packet = &pipe->slots[pipe->end % kSlots];
  int64_t at_ns = left_ns;
  if (left_ns >= kNever) {
    packet->arrives_ns = kNever;
    return;
  }
  if (hold->kind == kPeriodic) {
    const int64_t since_ns = left_ns - link->began_ns;
    at_ns += (hold->time_ns - since_ns % hold->time_ns) % hold->time_ns;
  } else if (hold->kind == kRandom) {
    if (draw() <= hold->probability) {
      at_ns += (int64_t)(draw() * (double)hold->time_ns);
    }
    if (at_ns < hold->release_ns) {
      at_ns = hold->release_ns;
    }
    hold->release_ns = at_ns;
  } else if (hold->kind == kBatches) {
    if (hold->held > 0 && left_ns > hold->release_ns) {
      hold->held = 0;
    }
    if (hold->held == 0) {
      hold->release_ns = left_ns + hold->time_ns;
    }
    at_ns = hold->release_ns;
    if (++hold->held >= hold->packets) {
      for (at_ns = left_ns; hold->held > 1; --hold->held) {
        pipe->slots[(pipe->end - hold->held + 1) % kSlots].arrives_ns = at_ns + forward_ns;
      }
      hold->held = 0;
    }
  }
  packet->arrives_ns = at_ns + forward_ns;
}

static void read_trace(struct link_state* link, const char* path) {
  unsigned long long ms;
  uint64_t room = 0;
  FILE* file = fopen(path, "r");
  if (file == NULL) {
    fail(path);
  }
  while (fscanf(file, "%llu", &ms) == 1) {
    if (link->count == room) {
      room = room ? 2 * room : 4096;
      link->opportunities_ns = realloc(link->opportunities_ns, room * sizeof(int64_t));
      if (link->opportunities_ns == NULL) {
        fail("memory");
      }
    }
    link->opportunities_ns[link->count++] = (int64_t)ms * 1000000;
  }
  fclose(file);
  if (link->count == 0 || link->opportunities_ns[link->count - 1] == 0) {
    fprintf(stderr, "link_emulator: %s has no delivery times, but a trace needs at least one\n",
            path);
    exit(2);
  }
}

/* Parses the optional arguments. Returns 1 if they are valid. */
static int read_options(int argc, char** argv, struct link_state* link, struct hold_state* hold) {
  static const char* const semantics[] = {"", "ns2", "mahimahi", "cellsim"};
  int next = 9;
  if (next + 3 < argc && strcmp(argv[next], "trace") == 0) {
    for (int kind = kNs2; kind <= kCellsim; ++kind) {
      if (strcmp(argv[next + 1], semantics[kind]) == 0) {
        link->semantics = (enum semantics)kind;
      }
    }
    link->ends = strcmp(argv[next + 2], "ends") == 0;
    read_trace(link, argv[next + 3]);
    if (link->semantics == kRate) {
      return 0;
    }
    next += 4;
  }
  if (next + 2 < argc && strcmp(argv[next], "hold") == 0) {
    const char* kind = argv[next + 1];
    const int numbers = strcmp(kind, "periodic") == 0 ? 1 : 2;
    if (next + 1 + numbers >= argc) {
      return 0;
    }
    hold->time_ns = (int64_t)(atof(argv[next + 2]) * 1000);
    if (strcmp(kind, "periodic") == 0) {
      hold->kind = kPeriodic;
    } else if (strcmp(kind, "batches") == 0) {
      hold->kind = kBatches;
      hold->packets = strtoull(argv[next + 2], NULL, 10);
      hold->time_ns = (int64_t)(atof(argv[next + 3]) * 1000);
    } else if (strcmp(kind, "random") == 0) {
      hold->kind = kRandom;
      hold->probability = atof(argv[next + 3]);
    }
    if (hold->kind == kNothing || hold->time_ns <= 0) {
      return 0;
    }
    next += 2 + numbers;
  }
  return next == argc;
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
  struct link_state link = {0};
  struct hold_state hold = {0};
  int64_t last_back_ns = 0;
  static unsigned char discarded[kBytes];
  if (argc < 9 || !read_options(argc, argv, &link, &hold)) {
    fprintf(stderr,
            "link_emulator: invalid arguments; the comment at the top of link_emulator.c describes "
            "them\n");
    return 2;
  }
  link.rate_bps = atof(argv[3]);
  const int64_t delay_ns = (int64_t)(atof(argv[4]) * 1000);
  const uint64_t queue_packets = strtoull(argv[5], NULL, 10);
  const double loss = atof(argv[6]), jitter_us = atof(argv[7]);
  const int64_t forward_ns = delay_ns / 2, backward_ns = delay_ns - forward_ns;
  /* The forward delay before the queue; the rest comes after the link. */
  const int64_t before_ns = link.semantics == kCellsim ? forward_ns : 0;
  /* Semantics that count bytes take a packet from the queue only when it can be transmitted. */
  const uint64_t in_service = link.semantics == kRate || link.semantics == kNs2 ? 1 : 0;
  random_state = strtoull(argv[8], NULL, 10);

  /* Die with the parent, even if it is killed. */
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
    deliver(&forward, receivers, now, 1, backward_ns);
    deliver(&back, senders, now, 0, 0);
    for (int i = 0; i < 64; ++i) {
      struct packet* packet = new_packet(&forward);
      const ssize_t length = read(senders, packet ? packet->data : discarded, kBytes);
      struct flow* flow;
      int64_t left_ns;
      if (length <= 0) {
        break;
      }
      now = now_ns();
      if (link.began_ns == 0) {
        link.began_ns = now;
      }
      while (forward.waiting < forward.end &&
             forward.slots[forward.waiting % kSlots].leaves_queue_ns <= now + before_ns) {
        ++forward.waiting;
      }
      flow = flow_of(packet ? packet->data : discarded, (int)length, 0);
      if (flow != NULL && has_rst(packet ? packet->data : discarded, (int)length)) {
        flow->is_reset = 1;
      }
      if (packet == NULL || forward.end - forward.waiting >= queue_packets + in_service) {
        if (flow != NULL) {
          ++flow->drops;
        }
        continue;
      }
      packet->entered_ns = now;
      packet->length = (int)length;
      left_ns = leaves_link(&link, now + before_ns, length, &packet->leaves_queue_ns);
      if (loss > 0 && draw() <= loss) {
        /* A lost packet has used the link. */
        if (flow != NULL) {
          ++flow->losses;
        }
        continue;
      }
      release(&hold, &forward, &link, left_ns, forward_ns - before_ns);
      ++forward.end;
    }
    for (int i = 0; i < 64; ++i) {
      struct packet* packet = new_packet(&back);
      const ssize_t length = read(receivers, packet ? packet->data : discarded, kBytes);
      if (length <= 0) {
        break;
      }
      if (packet == NULL) {
        continue;
      }
      packet->length = (int)length;
      packet->entered_ns = now_ns();
      packet->arrives_ns = packet->entered_ns + backward_ns;
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

  printf(
      "{\"real_time\": %s, \"overruns\": %llu, \"late_us\": {\"0.5\": %.0f, \"0.99\": %.0f, "
      "\"0.999\": %.0f}, \"flows\": [",
      is_real_time ? "true" : "false", (unsigned long long)overruns, late_percentile_us(0.5),
      late_percentile_us(0.99), late_percentile_us(0.999));
  for (int i = 0; i < kFlows && flows[i].port != 0; ++i) {
    printf(
        "%s{\"port\": %u, \"packets\": %llu, \"bytes\": %llu, \"drops\": %llu, \"losses\": %llu, "
        "\"mean_rtt_ms\": %.6f}",
        i ? ", " : "", flows[i].port, (unsigned long long)flows[i].packets,
        (unsigned long long)flows[i].bytes, (unsigned long long)flows[i].drops,
        (unsigned long long)flows[i].losses,
        flows[i].packets ? flows[i].rtt_us / (double)flows[i].packets / 1000 : 0.0);
  }
  printf("]}\n");
  return 0;
}
