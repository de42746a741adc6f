// Runs the network, or two on the same random numbers, at a multiple of the clock's speed.

import type { Catalogue } from "./network";
import type { Event, Recording } from "./recording";
import { Simulator, STEP_MS } from "./simulator";

export type Order =
  | { kind: "load"; module: WebAssembly.Module }
  | { kind: "start"; recording: Recording; run: number }
  | { kind: "event"; event: Event }
  | { kind: "speed"; speed: number }
  | { kind: "record" };

export type Report =
  | { kind: "loaded"; catalogue: Catalogue }
  | { kind: "samples"; samples: Float64Array[]; achieved: number; run: number }
  | { kind: "recording"; recording: Recording; digests: string[] }
  | { kind: "replayed"; digests: string[] }
  | { kind: "refused"; sentence: string };

const TRACE_STEPS = 10;
// Rate, delay, buffer, loss and queue, after the seed.
const LINK_PARTS = 5;
const TURN_MS = 16;
// At most, so that orders are heard.
const BUSY_MS = 40;

let module: WebAssembly.Module;
let simulators: Simulator[] = [];
let current: Recording | undefined;
let replayed: Recording["events"] = [];
let stepsToReplay = 0;
// As the link was last told to be.
let link: number[] = [];
let speed = 1;
let owedMs = 0;
let lastTurn = 0;
// The number that the page gave to what it wants to see.
let run = 0;

const tell = (report: Report, transferred: Transferable[] = []): void =>
  (self as unknown as Worker).postMessage(report, transferred);

function happen(event: Event): void {
  for (const simulator of simulators) {
    if (event.kind === "link") simulator.changeLink((link = event.numbers));
    else simulator.switch(event.sender, event.how);
  }
}

async function start(recording: Recording, wanted: number): Promise<void> {
  current = undefined;
  run = wanted;
  const loaded: Simulator[] = [];
  for (const network of recording.networks) {
    const simulator = await Simulator.load(module);
    for (const table of recording.tables) simulator.addTable(table);
    simulator.start(network);
    loaded.push(simulator);
  }
  if (run !== wanted) return;
  simulators = loaded;
  replayed = recording.steps > 0 ? [...recording.events] : [];
  stepsToReplay = recording.steps;
  current = { ...recording, events: [], steps: 0, ratesPacketsPerMs: recording.steps > 0 ? undefined : recording.ratesPacketsPerMs };
  link = recording.networks[0].slice(1, 1 + LINK_PARTS);
  if (recording.steps === 0) {
    for (const { event } of recording.events) apply(event);
  }
  owedMs = 0;
}

function apply(event: Event): void {
  if (!current) return;
  happen(event);
  current.events.push({ step: current.steps, event });
}

function step(): Float64Array[] {
  const { steps, senders, ratesPacketsPerMs } = current!;
  if (ratesPacketsPerMs && steps % TRACE_STEPS === 0) {
    const rate = ratesPacketsPerMs[(steps / TRACE_STEPS) % ratesPacketsPerMs.length];
    if (rate !== link[0]) apply({ kind: "link", numbers: [rate, ...link.slice(1)] });
  }
  while (replayed.length > 0 && replayed[0].step <= steps) apply(replayed.shift()!.event);
  const samples = simulators.map((each) => each.run((steps + 1) * STEP_MS, STEP_MS, senders));
  current!.steps = steps + 1;
  if (stepsToReplay > 0 && current!.steps === stepsToReplay) {
    stepsToReplay = 0;
    tell({ kind: "replayed", digests: simulators.map((each) => each.digest()) });
  }
  return samples;
}

function turn(): void {
  const began = performance.now();
  const passed = lastTurn > 0 ? Math.min(began - lastTurn, 250) : 0;
  lastTurn = began;
  if (current && speed > 0) {
    owedMs += passed * speed;
    const parts: Float64Array[][] = simulators.map(() => []);
    let done = 0;
    try {
      while (owedMs >= STEP_MS && performance.now() - began < BUSY_MS) {
        step().forEach((samples, i) => parts[i].push(samples));
        owedMs -= STEP_MS;
        done += STEP_MS;
      }
    } catch (error) {
      refused(error);
    }
    // What this machine cannot do in time is left undone.
    owedMs = Math.min(owedMs, STEP_MS * Math.max(1, speed));
    if (done > 0) {
      const samples = parts.map(joined);
      const achieved = passed > 0 ? done / passed : speed;
      tell({ kind: "samples", samples, achieved, run }, samples.map((each) => each.buffer));
    }
  }
  setTimeout(turn, Math.max(0, TURN_MS - (performance.now() - began)));
}

function joined(parts: Float64Array[]): Float64Array {
  const all = new Float64Array(parts.reduce((sum, each) => sum + each.length, 0));
  let place = 0;
  for (const part of parts) {
    all.set(part, place);
    place += part.length;
  }
  return all;
}

function refused(error: unknown): void {
  // A module that has refused something is of no more use.
  current = undefined;
  tell({ kind: "refused", sentence: error instanceof Error ? error.message : String(error) });
}

self.onmessage = async ({ data }: MessageEvent<Order>): Promise<void> => {
  try {
    if (data.kind === "load") {
      module = data.module;
      const simulator = await Simulator.load(module);
      tell({ kind: "loaded", catalogue: { protocols: simulator.protocols(), queues: simulator.queues() } });
      turn();
    } else if (data.kind === "start") {
      await start(data.recording, data.run);
    } else if (data.kind === "event") {
      const { event } = data;
      // Of a link that follows a trace all else may be changed.
      const follows = event.kind === "link" && current?.ratesPacketsPerMs;
      apply(follows ? { kind: "link", numbers: [link[0], ...event.numbers.slice(1)] } : event);
    } else if (data.kind === "speed") {
      speed = data.speed;
    } else if (current) {
      const digests = simulators.map((each) => each.digest());
      tell({ kind: "recording", recording: { ...current, ratesPacketsPerMs: undefined }, digests });
    }
  } catch (error) {
    refused(error);
  }
};
