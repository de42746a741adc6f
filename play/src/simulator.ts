// The simulator's functions (simulator/src/live/live.h), compiled to WebAssembly.

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  remy_live_room(numbers: number): number;
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

// Recordings count in steps of this.
export const STEP_MS = 10;
// Of the numbers of a sample.
export const LINK_NUMBERS = 4;
export const SENDER_NUMBERS = 13;

export interface Named {
  name: string;
  title: string;
}

export class Simulator {
  private constructor(private readonly exports: Exports) {}

  static async load(module: WebAssembly.Module): Promise<Simulator> {
    // What the C library would ask an operating system for; nothing of it is ever used.
    const nothing = new Proxy({}, { get: () => () => 8 });
    const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: nothing });
    const exports = instance.exports as unknown as Exports;
    exports._initialize();
    return new Simulator(exports);
  }

  addTable(numbers: number[]): number {
    return this.with(numbers, (count) => this.exports.remy_live_add_table(count));
  }
  start(numbers: number[]): void {
    this.with(numbers, (count) => this.exports.remy_live_start(count));
  }
  changeLink(numbers: number[]): void {
    this.with(numbers, (count) => this.exports.remy_live_change_link(count));
  }
  switch(sender: number, how: number): void {
    this.refusing(() => this.exports.remy_live_switch(sender, how));
  }
  run(untilMs: number, stepMs: number, senders: number): Float64Array {
    const samples = this.refusing(() => this.exports.remy_live_run(untilMs, stepMs));
    const numbers = samples * (LINK_NUMBERS + senders * SENDER_NUMBERS);
    const place = this.exports.remy_live_samples();
    return new Float64Array(this.exports.memory.buffer, place, numbers).slice();
  }
  digest(): string {
    return BigInt.asUintN(64, this.exports.remy_live_digest()).toString(16).padStart(16, "0");
  }
  protocols(): Named[] {
    return this.names(this.exports.remy_live_protocols());
  }
  queues(): Named[] {
    return this.names(this.exports.remy_live_queues());
  }

  private with<Result>(numbers: number[], call: (count: number) => Result): Result {
    const place = this.exports.remy_live_room(numbers.length);
    new Float64Array(this.exports.memory.buffer, place, numbers.length).set(numbers);
    return this.refusing(() => call(numbers.length));
  }

  private refusing<Result>(call: () => Result): Result {
    try {
      return call();
    } catch (error) {
      const sentence = this.text(this.exports.remy_live_refusal());
      throw sentence ? new Error(sentence) : error;
    }
  }

  private names(place: number): Named[] {
    return this.text(place)
      .trimEnd()
      .split("\n")
      .map((line) => {
        const [name, title] = line.split("\t");
        return { name, title };
      });
  }

  private text(place: number): string {
    const bytes = new Uint8Array(this.exports.memory.buffer, place);
    return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
  }
}
