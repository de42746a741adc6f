// The network, with the keys of a network file (docs/reference/networks.md), and its conversion to
// the simulator's numbers (simulator/src/live/live.h).

import type { Named } from "./simulator";

export const MAXIMUM_SENDERS = 8;
export const PACKET_BITS = 12000;

// What a sender runs: a protocol on TCP, or a RemyCC (by table name) on datagrams.
export type Controller = { protocol: string } | { table: string };

// Holds a sender on or off. Without it the sender follows the network's traffic.
type HeldTraffic = { always: Record<string, never> } | { intervals: { begin_ms: number[] } };
export type Sender = Controller & { traffic?: HeldTraffic };

// The properties that can change while the network runs.
export interface Link {
  rate_mbps: number;
  rtt_ms: number;
  buffer: { packets: number };
  loss_probability: number;
  queue: string;
}

export interface Network extends Link {
  measurement: { jitter: { exponential_mean_ms: number } };
  traffic: { exponential_time: { mean_ms: number }; mean_off_ms: number };
  senders: Sender[];
}

// The simulator's protocols and queues, in order of their numbers.
export interface Catalogue {
  protocols: Named[];
  queues: Named[];
}

// 0: held off, 1: held on, 2: follows the network's traffic.
export type Switch = 0 | 1 | 2;

// The start time of a sender that is held off: effectively never.
const NEVER_MS = 1e12;

export function switchOf({ traffic }: Sender): Switch {
  return !traffic ? 2 : "always" in traffic ? 1 : 0;
}

export function withSwitch(controller: Controller, to: Switch): Sender {
  const { traffic: _, ...runs } = controller as Sender;
  if (to === 2) return runs;
  return { ...runs, traffic: to === 1 ? { always: {} } : { intervals: { begin_ms: [NEVER_MS] } } };
}

export function tableOf(controller: Controller | undefined): string | undefined {
  return controller && "table" in controller ? controller.table : undefined;
}

// A sender's controller in the comparison network, where `beside` replaces RemyCCs.
export function comparisonController(sender: Sender, beside: Controller): Controller {
  return "table" in sender ? beside : sender;
}

export function bdpPackets(rateMbps: number, rttMs: number): number {
  return (rateMbps * 1000 * rttMs) / PACKET_BITS;
}

export function packetsPerMs(rateMbps: number): number {
  return (rateMbps * 1000) / PACKET_BITS;
}

export function linkNumbers(link: Link, rateMbps: number, { queues }: Catalogue): number[] {
  const queue = queues.findIndex((each) => each.name === link.queue);
  // AQM queues need a buffer of at least one packet.
  const buffer = Math.max(link.queue === "drop-tail" ? 0 : 1, link.buffer.packets);
  return [packetsPerMs(rateMbps), link.rtt_ms, buffer, link.loss_probability, Math.max(0, queue)];
}

// The input of remy_live_start(). `tables` are names in the simulator's order. `controllers`
// replace the senders' own.
export function networkNumbers(
  network: Network,
  seed: number,
  rateMbps: number,
  controllers: Controller[],
  tables: string[],
  catalogue: Catalogue,
): number[] {
  const { measurement, traffic, senders } = network;
  return [
    seed,
    ...linkNumbers(network, rateMbps, catalogue),
    // Jitter applies to the clocks of RemyCCs only.
    senders.every((each) => "table" in each) ? measurement.jitter.exponential_mean_ms : 0,
    traffic.exponential_time.mean_ms,
    traffic.mean_off_ms,
    senders.length,
    ...controllers.map((each) => {
      if ("table" in each) return tables.indexOf(each.table);
      return -1 - Math.max(0, catalogue.protocols.findIndex(({ name }) => name === each.protocol));
    }),
  ];
}
