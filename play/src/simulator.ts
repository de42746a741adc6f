// The simulator's functions (simulator/src/live/live.h), compiled to WebAssembly.

import { SIGNALS } from "./table";

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  remy_live_input_buffer(numbers: number): number;
  remy_live_add_table(numbers: number): number;
  remy_live_start(numbers: number): void;
  remy_live_change_link(numbers: number): void;
  remy_live_switch(sender: number, how: number): void;
  remy_live_run(untilMs: number, stepMs: number): number;
  remy_live_samples(): number;
  remy_live_digest(): bigint;
  remy_live_protocols(): number;
  remy_live_queues(): number;
  remy_live_refusal(): number;
}

// The step in which recordings count time.
export const STEP_MS = 10;
// Numbers per sample: of the link, and of each sender.
export const LINK_NUMBERS = 4;
export const SENDER_NUMBERS = 9 + SIGNALS;

export interface Named {
  name: string;
  title: string;
}

export class Simulator {
  private constructor(private readonly exports: Exports) {}

  static async load(module: WebAssembly.Module): Promise<Simulator> {
    // Stubs for the C library's system calls, which are never used.
    const stubs = new Proxy({}, { get: () => () => 8 });
    const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: stubs });
    const exports = instance.exports as unknown as Exports;
    exports._initialize();
    return new Simulator(exports);
  }

  addTable(numbers: number[]): number {
    return this.withInput(numbers, (count) => this.exports.remy_live_add_table(count));
  }
  start(numbers: number[]): void {
    this.withInput(numbers, (count) => this.exports.remy_live_start(count));
  }
  changeLink(numbers: number[]): void {
    this.withInput(numbers, (count) => this.exports.remy_live_change_link(count));
  }
  switch(sender: number, how: number): void {
    this.withErrorMessage(() => this.exports.remy_live_switch(sender, how));
  }
  run(untilMs: number, stepMs: number, senders: number): Float64Array {
    const samples = this.withErrorMessage(() => this.exports.remy_live_run(untilMs, stepMs));
    const numbers = samples * (LINK_NUMBERS + senders * SENDER_NUMBERS);
    const address = this.exports.remy_live_samples();
    return new Float64Array(this.exports.memory.buffer, address, numbers).slice();
  }
  digest(): string {
    return BigInt.asUintN(64, this.exports.remy_live_digest()).toString(16).padStart(16, "0");
  }
  protocols(): Named[] {
    return this.readNames(this.exports.remy_live_protocols());
  }
  queues(): Named[] {
    return this.readNames(this.exports.remy_live_queues());
  }

  private withInput<Result>(numbers: number[], call: (count: number) => Result): Result {
    const address = this.exports.remy_live_input_buffer(numbers.length);
    new Float64Array(this.exports.memory.buffer, address, numbers.length).set(numbers);
    return this.withErrorMessage(() => call(numbers.length));
  }

  private withErrorMessage<Result>(call: () => Result): Result {
    try {
      return call();
    } catch (error) {
      const sentence = this.readText(this.exports.remy_live_refusal());
      throw sentence ? new Error(sentence) : error;
    }
  }

  private readNames(address: number): Named[] {
    return this.readText(address)
      .trimEnd()
      .split("\n")
      .map((line) => {
        const [name, title] = line.split("\t");
        return { name, title };
      });
  }

  private readText(address: number): string {
    const bytes = new Uint8Array(this.exports.memory.buffer, address);
    return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
  }
}
