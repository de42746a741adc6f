// The set-up: the content of a link to the page and of a recording.

import { TABLES } from "./embedded";
import type { Controller, Network } from "./network";
import { BIN_MS, type Trace } from "./trace";

export interface Setup {
  network: Network;
  seed: number;
  // Simulated time per real time.
  speed: number;
  // Replaces RemyCCs in a second network with the same random numbers.
  beside?: Controller;
  // The link's rate follows this trace.
  trace?: Trace;
  // Tables that are not embedded in the page, in the simulator's number format.
  tables: Record<string, number[]>;
}

export const DEFAULT_SETUP: Setup = {
  network: {
    rate_mbps: 15,
    rtt_ms: 150,
    buffer: { packets: 1000 },
    loss_probability: 0,
    queue: "drop-tail",
    measurement: { jitter: { exponential_mean_ms: 0 } },
    traffic: { exponential_time: { mean_ms: 5000 }, mean_off_ms: 5000 },
    senders: [],
  },
  seed: 1,
  speed: 1,
  tables: {},
};

// All tables, including embedded ones.
export function knownTables({ tables }: Setup): Record<string, number[]> {
  return { ...TABLES, ...tables };
}

// The link's rate at a time, by its trace if it has one.
export function rateMbpsAt({ network, trace }: Setup, timeMs: number): number {
  return trace ? trace.rates_mbps[Math.floor(timeMs / BIN_MS) % trace.rates_mbps.length] : network.rate_mbps;
}

// Parses a set-up from a file or an address; undefined if it is from another version of the page.
export function setupFrom(saved: Partial<Setup>): Setup | undefined {
  if (!Array.isArray(saved?.network?.senders)) return undefined;
  return { ...DEFAULT_SETUP, ...saved, network: { ...DEFAULT_SETUP.network, ...saved.network } };
}

async function transform(bytes: Uint8Array, stream: GenericTransformStream): Promise<Uint8Array> {
  const packed = new Blob([bytes as BlobPart]).stream().pipeThrough(stream as ReadableWritablePair);
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

export async function toFragment(setup: Setup): Promise<string> {
  const text = new TextEncoder().encode(JSON.stringify(setup));
  const packed = await transform(text, new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of packed) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function fromFragment(fragment: string): Promise<Setup | undefined> {
  try {
    const binary = atob(fragment.replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const text = await transform(packed, new DecompressionStream("deflate-raw"));
    return setupFrom(JSON.parse(new TextDecoder().decode(text)));
  } catch {
    return undefined;
  }
}
