// Runs the network, or two with the same random numbers, at a multiple of real time.

import type { Catalogue } from "./network";
import type { Event, Recording } from "./recording";
import { Simulator, STEP_MS } from "./simulator";

export type Command =
  | { kind: "load"; module: WebAssembly.Module }
  | { kind: "start"; recording: Recording; run: number }
  | { kind: "event"; event: Event }
  | { kind: "speed"; speed: number }
  | { kind: "request recording" };

export type WorkerMessage =
  | { kind: "loaded"; catalogue: Catalogue }
  | { kind: "samples"; samples: Float64Array[]; achieved: number; run: number }
  | { kind: "recording"; recording: Recording; digests: string[] }
  | { kind: "replayed"; digests: string[] }
  | { kind: "error"; sentence: string };

// Steps for which each rate of a trace holds.
const STEPS_PER_TRACE_RATE = 10;
// Rate, delay, buffer, loss and queue, which come after the seed in a network's numbers.
const LINK_PARTS = 5;
const TURN_INTERVAL_MS = 16;
// Longest time without returning to the event loop, so that commands are received.
const MAX_TURN_MS = 40;

let module: WebAssembly.Module;
let simulators: Simulator[] = [];
let current: Recording | undefined;
let eventsToReplay: Recording["events"] = [];
let stepsToReplay = 0;
// The current numbers of the link.
let link: number[] = [];
let speed = 1;
let owedMs = 0;
let lastTurn = 0;
// Number of the run that the page shows.
let run = 0;

const post = (message: WorkerMessage, transfer: Transferable[] = []): void =>
  (self as unknown as Worker).postMessage(message, transfer);

function applyToSimulators(event: Event): void {
  for (const simulator of simulators) {
    if (event.kind === "link") simulator.changeLink((link = event.numbers));
    else simulator.switch(event.sender, event.how);
  }
}

async function start(recording: Recording, newRun: number): Promise<void> {
  current = undefined;
  run = newRun;
  const loaded: Simulator[] = [];
  for (const network of recording.networks) {
    const simulator = await Simulator.load(module);
    for (const table of recording.tables) simulator.addTable(table);
    simulator.start(network);
    loaded.push(simulator);
  }
  if (run !== newRun) return;
  simulators = loaded;
  eventsToReplay = recording.steps > 0 ? [...recording.events] : [];
  stepsToReplay = recording.steps;
  current = { ...recording, events: [], steps: 0, ratesPacketsPerMs: recording.steps > 0 ? undefined : recording.ratesPacketsPerMs };
  link = recording.networks[0].slice(1, 1 + LINK_PARTS);
  if (recording.steps === 0) {
    for (const { event } of recording.events) applyAndRecord(event);
  }
  owedMs = 0;
}

function applyAndRecord(event: Event): void {
  if (!current) return;
  applyToSimulators(event);
  current.events.push({ step: current.steps, event });
}

function step(): Float64Array[] {
  const { steps, senders, ratesPacketsPerMs } = current!;
  if (ratesPacketsPerMs && steps % STEPS_PER_TRACE_RATE === 0) {
    const rate = ratesPacketsPerMs[(steps / STEPS_PER_TRACE_RATE) % ratesPacketsPerMs.length];
    if (rate !== link[0]) applyAndRecord({ kind: "link", numbers: [rate, ...link.slice(1)] });
  }
  while (eventsToReplay.length > 0 && eventsToReplay[0].step <= steps) applyAndRecord(eventsToReplay.shift()!.event);
  const samples = simulators.map((each) => each.run((steps + 1) * STEP_MS, STEP_MS, senders));
  current!.steps = steps + 1;
  if (stepsToReplay > 0 && current!.steps === stepsToReplay) {
    stepsToReplay = 0;
    post({ kind: "replayed", digests: simulators.map((each) => each.digest()) });
  }
  return samples;
}

function runTurn(): void {
  const startedAt = performance.now();
  const passed = lastTurn > 0 ? Math.min(startedAt - lastTurn, 250) : 0;
  lastTurn = startedAt;
  if (current && speed > 0) {
    owedMs += passed * speed;
    const parts: Float64Array[][] = simulators.map(() => []);
    let done = 0;
    try {
      while (owedMs >= STEP_MS && performance.now() - startedAt < MAX_TURN_MS) {
        step().forEach((samples, i) => parts[i].push(samples));
        owedMs -= STEP_MS;
        done += STEP_MS;
      }
    } catch (error) {
      reportError(error);
    }
    // Time that this machine cannot catch up with is dropped, so that the run becomes slower.
    owedMs = Math.min(owedMs, STEP_MS * Math.max(1, speed));
    if (done > 0) {
      const samples = parts.map(concatenate);
      const achieved = passed > 0 ? done / passed : speed;
      post({ kind: "samples", samples, achieved, run }, samples.map((each) => each.buffer));
    }
  }
  setTimeout(runTurn, Math.max(0, TURN_INTERVAL_MS - (performance.now() - startedAt)));
}

function concatenate(parts: Float64Array[]): Float64Array {
  const all = new Float64Array(parts.reduce((sum, each) => sum + each.length, 0));
  let offset = 0;
  for (const part of parts) {
    all.set(part, offset);
    offset += part.length;
  }
  return all;
}

function reportError(error: unknown): void {
  // After an error the module instance cannot be used further.
  current = undefined;
  post({ kind: "error", sentence: error instanceof Error ? error.message : String(error) });
}

self.onmessage = async ({ data }: MessageEvent<Command>): Promise<void> => {
  try {
    if (data.kind === "load") {
      module = data.module;
      const simulator = await Simulator.load(module);
      post({ kind: "loaded", catalogue: { protocols: simulator.protocols(), queues: simulator.queues() } });
      runTurn();
    } else if (data.kind === "start") {
      await start(data.recording, data.run);
    } else if (data.kind === "event") {
      const { event } = data;
      // A link that follows a trace keeps its rate; everything else can change.
      const follows = event.kind === "link" && current?.ratesPacketsPerMs;
      applyAndRecord(follows ? { kind: "link", numbers: [link[0], ...event.numbers.slice(1)] } : event);
    } else if (data.kind === "speed") {
      speed = data.speed;
    } else if (current) {
      const digests = simulators.map((each) => each.digest());
      post({ kind: "recording", recording: { ...current, ratesPacketsPerMs: undefined }, digests });
    }
  } catch (error) {
    reportError(error);
  }
};
