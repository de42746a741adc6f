// A run, as it can be made again, and the file that keeps one.

import { type Catalogue, type Controller, networkNumbers, packetsPerMs, replaced, switchOf, tableOf } from "./network";
import { knownTables, rateMbpsAt, type Setup } from "./setup";

// A change of a network while it runs.
export type Event =
  | { kind: "link"; numbers: number[] }
  | { kind: "switch"; sender: number; how: number };

export interface Recording {
  tables: number[][];
  // One network, or two: as remy_live_start() wants them.
  networks: number[][];
  senders: number;
  // A trace's rates, TRACE_STEPS steps each, from the beginning again after the last. They make
  // events, so that a run that is made again needs none.
  ratesPacketsPerMs?: number[];
  // With the number of the step before which they happened.
  events: { step: number; event: Event }[];
  steps: number;
}

// The file that `Record` writes.
export interface RecordingFile {
  kind: "remy-farm recording";
  state: Setup;
  recording: Recording;
  digests: string[];
}

// From the beginning, with nothing that happens later.
export function recordingOf(setup: Setup, catalogue: Catalogue): Recording {
  const { network, seed, beside, trace } = setup;
  const known = knownTables(setup);
  const { senders } = network;
  // One that nobody runs may be one that the simulator refused.
  const run = new Set([...senders, beside].map(tableOf));
  const names = Object.keys(known).filter((name) => run.has(name));
  const numbers = (controllers: Controller[]): number[] =>
    networkNumbers(network, seed, rateMbpsAt(setup, 0), controllers, names, catalogue);
  const networks = [numbers(senders)];
  if (beside) networks.push(numbers(senders.map((each) => replaced(each, beside))));
  return {
    tables: names.map((name) => known[name]),
    networks,
    senders: senders.length,
    ratesPacketsPerMs: trace?.rates_mbps.map(packetsPerMs),
    events: senders.map((each, sender) => ({ step: 0, event: { kind: "switch", sender, how: switchOf(each) } })),
    steps: 0,
  };
}
