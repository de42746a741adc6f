// Recordings, from which a run can be replayed, and their file.

import { type Catalogue, type Controller, networkNumbers, packetsPerMs, comparisonController, switchOf, tableOf } from "./network";
import { knownTables, rateMbpsAt, type Setup } from "./setup";

// A change of the network during a run.
export type Event =
  | { kind: "link"; numbers: number[] }
  | { kind: "switch"; sender: number; how: number };

export interface Recording {
  tables: number[][];
  // Inputs of remy_live_start() for one network, or two.
  networks: number[][];
  senders: number;
  // The rates of a trace, STEPS_PER_TRACE_RATE steps each, repeated from the start. Replays do not need
  // them, since rate changes are recorded as events.
  ratesPacketsPerMs?: number[];
  // Events, each with the step before which it happened.
  events: { step: number; event: Event }[];
  steps: number;
}

// The file that the Record button saves.
export interface RecordingFile {
  kind: "remy-farm recording";
  state: Setup;
  recording: Recording;
  digests: string[];
}

// Returns the recording of a new run, without later events.
export function newRecording(setup: Setup, catalogue: Catalogue): Recording {
  const { network, seed, beside, trace } = setup;
  const known = knownTables(setup);
  const { senders } = network;
  // Includes only tables that are run: others may be ones that the simulator has rejected.
  const run = new Set([...senders, beside].map(tableOf));
  const names = Object.keys(known).filter((name) => run.has(name));
  const numbers = (controllers: Controller[]): number[] =>
    networkNumbers(network, seed, rateMbpsAt(setup, 0), controllers, names, catalogue);
  const networks = [numbers(senders)];
  if (beside) networks.push(numbers(senders.map((each) => comparisonController(each, beside))));
  return {
    tables: names.map((name) => known[name]),
    networks,
    senders: senders.length,
    ratesPacketsPerMs: trace?.rates_mbps.map(packetsPerMs),
    events: senders.map((each, sender) => ({ step: 0, event: { kind: "switch", sender, how: switchOf(each) } })),
    steps: 0,
  };
}
