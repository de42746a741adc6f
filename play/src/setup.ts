// The set-up: all that a link to the page, or a recording's file, holds.

import { TABLES } from "./embedded";
import type { Controller, Network } from "./network";
import { BIN_MS, type Trace } from "./trace";

export interface Setup {
  network: Network;
  seed: number;
  // A multiple of the clock's.
  speed: number;
  // Takes the place of RemyCCs in a second network, on the same random numbers.
  beside?: Controller;
  // Followed by the link's rate.
  trace?: Trace;
  // Tables that are not embedded in the page, as the simulator's numbers.
  tables: Record<string, number[]>;
}

export const USUAL: Setup = {
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

// All tables, those that are embedded in the page included.
export function knownTables({ tables }: Setup): Record<string, number[]> {
  return { ...TABLES, ...tables };
}

// The link's rate at a time of its trace, if it follows one.
export function rateMbpsAt({ network, trace }: Setup, timeMs: number): number {
  return trace ? trace.rates_mbps[Math.floor(timeMs / BIN_MS) % trace.rates_mbps.length] : network.rate_mbps;
}

// From a file or an address; none where that is of another version of the page.
export function setupFrom(kept: Partial<Setup>): Setup | undefined {
  if (!Array.isArray(kept?.network?.senders)) return undefined;
  return { ...USUAL, ...kept, network: { ...USUAL.network, ...kept.network } };
}

async function through(bytes: Uint8Array, stream: GenericTransformStream): Promise<Uint8Array> {
  const packed = new Blob([bytes as BlobPart]).stream().pipeThrough(stream as ReadableWritablePair);
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

export async function toFragment(setup: Setup): Promise<string> {
  const text = new TextEncoder().encode(JSON.stringify(setup));
  const packed = await through(text, new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of packed) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function fromFragment(fragment: string): Promise<Setup | undefined> {
  try {
    const binary = atob(fragment.replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const text = await through(packed, new DecompressionStream("deflate-raw"));
    return setupFrom(JSON.parse(new TextDecoder().decode(text)));
  } catch {
    return undefined;
  }
}
