// What a person has set up: all that a link to the page holds.

import type { Trace } from "./trace";

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

// `first` is the table that the page is about; none: Cubic's place.
export function presets(first: string): Preset[] {
  return [
    {
      name: "Two alike",
      about: "Two senders of one kind on 15 Mbit/s and 150 ms: switch one off and see the other take its share.",
      change: { senders: remy(first, 2) },
    },
    {
      name: "Dumbbell of 8",
      about: "Eight senders that come and go, on and off for 5 s in the mean (TCP ex Machina, section 5).",
      change: { senders: remy(first, 8, 2) },
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
      name: "Satellite",
      about: "42 Mbit/s, 500 ms, and one packet in a hundred lost.",
      change: { senders: [...remy(first, 1), ...each("cubic", "bbr")], rateMbps: 42, rttMs: 500, loss: 0.01 },
    },
    {
      name: "Data centre",
      about: "300 Mbit/s and 5 ms, slowed down ten times.",
      change: { senders: each("dctcp", "dctcp", "newreno"), queue: "threshold-marking", rateMbps: 300, rttMs: 5, buffer: 500, speed: 0.1 },
    },
  ];
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
