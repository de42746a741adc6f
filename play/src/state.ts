// What a person has set up: all that a link to the page holds.

import { BIN_MS, type Trace } from "./trace";

export const MAXIMUM_SENDERS = 8;
export const PACKET_BITS = 12000;

// Off, on, or left to a process of exponential on and off times.
export type Switch = 0 | 1 | 2;

export interface Sender {
  // "table:" and a table's name, or a protocol's name.
  runs: string;
  how: Switch;
}

export interface State {
  seed: number;
  rateMbps: number;
  rttMs: number;
  // Packets that may wait; negative: as many as come.
  buffer: number;
  loss: number;
  jitterMs: number;
  queue: string;
  onMs: number;
  offMs: number;
  speed: number;
  senders: Sender[];
  // What RemyCCs run beside, on the same random numbers; none: "".
  beside: string;
  // What the link's rate follows.
  trace?: Trace;
  // Tables that the page does not bring along: numbers by name.
  tables: Record<string, number[]>;
}

export const ordinary: State = {
  seed: 1,
  rateMbps: 15,
  rttMs: 150,
  buffer: 1000,
  loss: 0,
  jitterMs: 0,
  queue: "drop-tail",
  onMs: 5000,
  offMs: 5000,
  speed: 1,
  senders: [],
  beside: "",
  tables: {},
};

export interface Preset {
  name: string;
  about: string;
  change: Partial<State>;
}

const remy = (table: string, count: number, how: Switch = 1): Sender[] =>
  Array.from({ length: count }, () => ({ runs: table ? `table:${table}` : "cubic", how }));
const each = (...runs: string[]): Sender[] => runs.map((name) => ({ runs: name, how: 1 }));

// Mbit/s, five seconds each.
const CHANGING = [55, 18, 92, 34, 12, 76, 100, 25];

// By what they are from. `first` is the table that the page is about; none: Cubic's place.
export function presets(first: string): Record<string, Preset[]> {
  return {
    "To begin with": [
      {
        name: "Two alike",
        about: "Two senders of one kind on 15 Mbit/s and 150 ms: switch one off and see the other take its share.",
        change: { senders: remy(first, 2) },
      },
      {
        name: "Beside Cubic",
        about: "A RemyCC and Cubic share a link with a buffer of one BDP.",
        change: { senders: [...remy(first, 1), ...each("cubic")], buffer: 188 },
      },
      {
        name: "Full buffers",
        about: "Cubic fills a buffer of five BDPs; NewReno, BBR and Copa wait with it.",
        change: { senders: each("cubic", "newreno", "bbr", "copa"), buffer: 940 },
      },
      {
        name: "CoDel",
        about: "Cubic over CoDel: packets are dropped before the buffer is full.",
        change: { senders: each("cubic", "cubic"), queue: "codel" },
      },
      {
        name: "Data centre",
        about: "300 Mbit/s and 5 ms, slowed down ten times.",
        change: { senders: each("dctcp", "dctcp", "newreno"), queue: "threshold-marking", rateMbps: 300, rttMs: 5, buffer: 500, speed: 0.1 },
      },
    ],
    "TCP ex Machina, 2013": [
      {
        name: "Dumbbell of 8",
        about: "Eight senders that come and go, on and off for 5 s in the mean (section 5).",
        change: { senders: remy(first, 8, 2) },
      },
      {
        name: "A competitor leaves",
        about: "Two senders, on and off for 5 s in the mean: who is alone has the link an RTT later (Figure 6).",
        change: { senders: remy(first, 2, 2) },
      },
    ],
    "Learnability, 2014": [
      {
        name: "Short on and off",
        about: "Two senders, on and off for 1 s in the mean, on 32 Mbit/s (Figure 2): move the link rate from 1 to 300.",
        change: { senders: remy(first, 2, 2), rateMbps: 32, onMs: 1000, offMs: 1000, buffer: 2000 },
      },
      {
        name: "Beside NewReno",
        about: "10 Mbit/s, 100 ms and a buffer of 200 packets, with a NewReno on the same link (Figure 7).",
        change: { senders: [...remy(first, 1), ...each("newreno")], rateMbps: 10, rttMs: 100, buffer: 200 },
      },
    ],
    "PCC, 2015": [
      {
        name: "Satellite",
        about: "42 Mbit/s, 500 ms (800 in Figure 6), and 0.74 % of packets lost.",
        change: { senders: [...remy(first, 1), ...each("cubic", "bbr")], rateMbps: 42, rttMs: 500, loss: 0.0074 },
      },
      {
        name: "Random loss",
        about: "100 Mbit/s, 30 ms, one packet in a hundred lost, and a buffer of one BDP (Figure 7).",
        change: { senders: [...remy(first, 1), ...each("cubic", "pcc-allegro")], rateMbps: 100, rttMs: 30, loss: 0.01, buffer: 250 },
      },
      {
        name: "Changing link",
        about: "A rate that is another every 5 s, from 12 to 100 Mbit/s (as in Figure 11, where RTT and losses change, too).",
        change: {
          senders: [...remy(first, 1), ...each("cubic")],
          rttMs: 55,
          buffer: 252,
          trace: { name: "another rate every 5 s", rates: CHANGING.flatMap((rate) => Array<number>(5000 / BIN_MS).fill(rate)) },
        },
      },
    ],
  };
}

async function through(bytes: Uint8Array, stream: GenericTransformStream): Promise<Uint8Array> {
  const body = new Blob([bytes as BlobPart]).stream().pipeThrough(stream as ReadableWritablePair);
  return new Uint8Array(await new Response(body).arrayBuffer());
}

export async function toFragment(state: State): Promise<string> {
  const text = new TextEncoder().encode(JSON.stringify(state));
  const packed = await through(text, new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of packed) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function fromFragment(fragment: string): Promise<State | undefined> {
  try {
    const binary = atob(fragment.replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const text = await through(packed, new DecompressionStream("deflate-raw"));
    return { ...ordinary, ...JSON.parse(new TextDecoder().decode(text)) };
  } catch {
    return undefined;
  }
}
