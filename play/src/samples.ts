// Recent samples of a network, in the form that the charts need.

import { LINK_NUMBERS, SENDER_NUMBERS } from "./simulator";
import { PACKET_BITS } from "./network";

export interface Flow {
  on: boolean;
  windowPackets: number;
  inFlight: number;
  received: number;
  lost: number;
  delaySumMs: number;
  rule: number;
  memory: ArrayLike<number>;
}

export interface Point {
  mbps: number;
  delayMs: number;
}

const MAX_POINTS = 900;
const MEAN_OVER_MS = 1000;
const TRAIL_MS = 4000;

export class Samples {
  timesMs: number[] = [];
  waiting: number[] = [];
  drops: (number | null)[] = [];
  inFlight: number[][];
  on: number[] = [];
  flows: Flow[] = [];
  // By flow: throughput and delay over the last second; the latest is last.
  trails: Point[][];
  private past: { time: number; received: number[]; delay: number[] }[] = [];
  private lastDrops = 0;
  private kept = -Infinity;

  constructor(readonly senders: number) {
    this.inFlight = Array.from({ length: senders }, () => []);
    this.trails = Array.from({ length: senders }, () => []);
  }

  // Adds samples. `windowMs` is the time that the charts show.
  add(numbers: Float64Array, windowMs: number): void {
    const size = LINK_NUMBERS + this.senders * SENDER_NUMBERS;
    for (let at = 0; at < numbers.length; at += size) {
      const time = numbers[at];
      const isLast = at + size >= numbers.length;
      const isKept = time - this.kept >= windowMs / MAX_POINTS - 1e-9;
      if (!isKept && !isLast) continue;
      const flows = Array.from({ length: this.senders }, (_, i) =>
        readFlow(numbers.subarray(at + LINK_NUMBERS + i * SENDER_NUMBERS)),
      );
      this.flows = flows;
      if (isKept) {
        this.kept = time;
        this.keep(time, numbers[at + 1], numbers[at + 2] + numbers[at + 3], flows);
      }
    }
    const begin = this.timesMs.findIndex((time) => time >= this.kept - windowMs);
    if (begin > 64) {
      for (const column of [this.timesMs, this.waiting, this.drops, this.on, ...this.inFlight]) {
        column.splice(0, begin);
      }
    }
  }

  private keep(time: number, waiting: number, drops: number, flows: Flow[]): void {
    this.timesMs.push(time);
    this.waiting.push(waiting);
    this.drops.push(drops > this.lastDrops ? drops - this.lastDrops : null);
    this.lastDrops = drops;
    this.on.push(flows.filter((each) => each.on).length);
    flows.forEach((each, i) => this.inFlight[i].push(each.inFlight));
    this.past.push({
      time,
      received: flows.map((each) => each.received),
      delay: flows.map((each) => each.delaySumMs),
    });
    while (this.past[0].time < time - MEAN_OVER_MS) this.past.shift();
    const first = this.past[0];
    flows.forEach((each, i) => {
      const packets = each.received - first.received[i];
      const trail = this.trails[i];
      if (packets > 0 && time > first.time) {
        trail.push({
          mbps: (packets * PACKET_BITS) / (time - first.time) / 1000,
          delayMs: (each.delaySumMs - first.delay[i]) / packets,
        });
      } else {
        trail.shift();
      }
      while (trail.length > TRAIL_MS / 20) trail.shift();
    });
  }
}

function readFlow(numbers: Float64Array): Flow {
  return {
    on: numbers[0] === 1,
    windowPackets: numbers[1],
    inFlight: numbers[4],
    received: numbers[5],
    lost: numbers[6],
    delaySumMs: numbers[7],
    rule: numbers[8],
    memory: numbers.slice(9, SENDER_NUMBERS),
  };
}
