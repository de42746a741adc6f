// The network that is set up, by the keys of a network's file (docs/reference/networks.md), and as
// the simulator's numbers (simulator/src/live/live.h).

import type { Named } from "./simulator";

export const MAXIMUM_SENDERS = 8;
export const PACKET_BITS = 12000;

// A protocol, whose transport is TCP, or a RemyCC by its table's name, whose transport is datagrams.
export type Controller = { protocol: string } | { table: string };

// Held on, or held off; without it a sender has the network's traffic.
type HeldTraffic = { always: Record<string, never> } | { intervals: { begin_ms: number[] } };
export type Sender = Controller & { traffic?: HeldTraffic };

// The keys that may change while the network runs.
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

// The simulator's protocols and queues, in the order of their numbers.
export interface Catalogue {
  protocols: Named[];
  queues: Named[];
}

// Held off, held on, or left to the network's traffic.
export type Switch = 0 | 1 | 2;

// When a sender begins that is held off: never, as far as a network's file can say it.
const NEVER_MS = 1e12;

export function switchOf({ traffic }: Sender): Switch {
  return !traffic ? 2 : "always" in traffic ? 1 : 0;
}

export function switched(controller: Controller, to: Switch): Sender {
  const { traffic: _, ...runs } = controller as Sender;
  if (to === 2) return runs;
  return { ...runs, traffic: to === 1 ? { always: {} } : { intervals: { begin_ms: [NEVER_MS] } } };
}

export function tableOf(controller: Controller | undefined): string | undefined {
  return controller && "table" in controller ? controller.table : undefined;
}

// A sender's controller in the network beside, where `beside` takes the place of RemyCCs.
export function replaced(sender: Sender, beside: Controller): Controller {
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
  // AQMs must have room for a packet.
  const buffer = Math.max(link.queue === "drop-tail" ? 0 : 1, link.buffer.packets);
  return [packetsPerMs(rateMbps), link.rtt_ms, buffer, link.loss_probability, Math.max(0, queue)];
}

// The numbers of remy_live_start(). `tables` are names in the order in which the simulator has them;
// `controllers` are run in place of the senders' own.
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
    // Only RemyCCs' own clocks know jitter.
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
