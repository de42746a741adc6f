// Link traces in mahimahi's format: one time in ms per line at which a packet could be delivered.

export interface Trace {
  name: string;
  // Mean rates over BIN_MS each, repeated from the start.
  rates_mbps: number[];
}

export const BIN_MS = 100;
const MAX_BINS = 36_000;
// The least rate of a bin: the simulator needs a positive rate.
const MIN_MBPS = 0.012;

// Throws an Error whose message completes a sentence that starts with the file's name.
export function readTrace(name: string, text: string, packetBits: number): Trace {
  const lines = text.split(/\r?\n/);
  const counts: number[] = [];
  let last = 0;
  lines.forEach((line, i) => {
    const words = line.trim();
    if (words === "" || words.startsWith("#")) return;
    const at = Number(words);
    if (!/^\d+(\.\d+)?$/.test(words) || at < last) {
      throw new Error(`is not a trace: line ${i + 1} is ${JSON.stringify(words.slice(0, 40))}, but must be a time in ms that does not precede the line above`);
    }
    last = at;
    const bin = Math.floor(at / BIN_MS);
    if (bin >= MAX_BINS) throw new Error(`is longer than ${(MAX_BINS * BIN_MS) / 60_000} minutes`);
    while (counts.length <= bin) counts.push(0);
    counts[bin] += 1;
  });
  if (counts.length === 0) throw new Error("is not a trace: it has no lines");
  return { name, rates_mbps: counts.map((each) => Math.max(MIN_MBPS, (each * packetBits) / (1000 * BIN_MS))) };
}
