// Preset networks: simple ones, and some of studies.

import { TABLES } from "./embedded";
import { type Network, type Sender, type Switch, withSwitch } from "./network";
import { type Setup, DEFAULT_SETUP } from "./setup";
import { BIN_MS, type Trace } from "./trace";

export interface Preset {
  name: string;
  about: string;
  // Differences from the default network.
  network: Partial<Network>;
  speed?: number;
  trace?: Trace;
}

// `tables` are the tables opened so far, which stay available.
export function presetSetup({ network, speed = 1, trace }: Preset, tables: Setup["tables"]): Setup {
  return { ...DEFAULT_SETUP, network: { ...DEFAULT_SETUP.network, ...network }, speed, trace, tables };
}

const protocols = (...names: string[]): Sender[] => names.map((protocol) => withSwitch({ protocol }, 1));

// Mbit/s, five seconds each.
const CHANGING = [55, 18, 92, 34, 12, 76, 100, 25];

// The page's main table. Without one, CUBIC replaces it.
const [first] = Object.keys(TABLES);

const remy = (count: number, to: Switch = 1): Sender[] =>
  Array.from({ length: count }, () => withSwitch(first ? { table: first } : { protocol: "cubic" }, to));

// Presets, grouped by source.
export const PRESETS: Record<string, Preset[]> = {
  "To begin with": [
    {
      name: "Two alike",
      about: "Two senders of one kind on 15 Mbit/s and 150 ms: switch one off and see the other take its share.",
      network: { senders: remy(2) },
    },
    {
      name: "Beside Cubic",
      about: "A RemyCC and Cubic share a link with a buffer of one BDP.",
      network: { senders: [...remy(1), ...protocols("cubic")], buffer: { packets: 188 } },
    },
    {
      name: "Full buffers",
      about: "Cubic fills a buffer of five BDPs; NewReno, BBR and Copa wait with it.",
      network: { senders: protocols("cubic", "newreno", "bbr", "copa"), buffer: { packets: 940 } },
    },
    {
      name: "CoDel",
      about: "Cubic over CoDel: packets are dropped before the buffer is full.",
      network: { senders: protocols("cubic", "cubic"), queue: "codel" },
    },
    {
      name: "Data centre",
      about: "300 Mbit/s and 5 ms, slowed down ten times.",
      network: {
        senders: protocols("dctcp", "dctcp", "newreno"),
        queue: "threshold-marking",
        rate_mbps: 300,
        rtt_ms: 5,
        buffer: { packets: 500 },
      },
      speed: 0.1,
    },
  ],
  "TCP ex Machina, 2013": [
    {
      name: "Dumbbell of 8",
      about: "Eight senders that come and go, on and off for 5 s in the mean (section 5).",
      network: { senders: remy(8, 2) },
    },
    {
      name: "A competitor leaves",
      about: "Two senders, on and off for 5 s in the mean: a sender that is left alone gets the whole link an RTT later (Figure 6).",
      network: { senders: remy(2, 2) },
    },
  ],
  "Learnability, 2014": [
    {
      name: "Short on and off",
      about: "Two senders, on and off for 1 s in the mean, on 32 Mbit/s (Figure 2): move the link rate from 1 to 300.",
      network: {
        senders: remy(2, 2),
        rate_mbps: 32,
        traffic: { exponential_time: { mean_ms: 1000 }, mean_off_ms: 1000 },
        buffer: { packets: 2000 },
      },
    },
    {
      name: "Beside NewReno",
      about: "10 Mbit/s, 100 ms and a buffer of 200 packets, with a NewReno on the same link (Figure 7).",
      network: { senders: [...remy(1), ...protocols("newreno")], rate_mbps: 10, rtt_ms: 100, buffer: { packets: 200 } },
    },
  ],
  "PCC, 2015": [
    {
      name: "Satellite",
      about: "42 Mbit/s, 500 ms (800 in Figure 6), and 0.74 % of packets lost.",
      network: { senders: [...remy(1), ...protocols("cubic", "bbr")], rate_mbps: 42, rtt_ms: 500, loss_probability: 0.0074 },
    },
    {
      name: "Random loss",
      about: "100 Mbit/s, 30 ms, one packet in a hundred lost, and a buffer of one BDP (Figure 7).",
      network: {
        senders: [...remy(1), ...protocols("cubic", "pcc-allegro")],
        rate_mbps: 100,
        rtt_ms: 30,
        loss_probability: 0.01,
        buffer: { packets: 250 },
      },
    },
    {
      name: "Changing link",
      about: "A rate that is another every 5 s, from 12 to 100 Mbit/s (as in Figure 11, where RTT and losses change, too).",
      network: { senders: [...remy(1), ...protocols("cubic")], rtt_ms: 55, buffer: { packets: 252 } },
      trace: {
        name: "another rate every 5 s",
        rates_mbps: CHANGING.flatMap((rateMbps) => Array<number>(5000 / BIN_MS).fill(rateMbps)),
      },
    },
  ],
};
