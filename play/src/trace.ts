// Recorded links: when a packet could be delivered, one time in ms a line, as mahimahi writes them.

export interface Trace {
  name: string;
  // Means over BIN_MS each; they begin again after the last.
  rates_mbps: number[];
}

export const BIN_MS = 100;
const MOST_BINS = 36_000;
// A link without any rate is none.
const LEAST_MBPS = 0.012;

// Raises Error, with what is wrong as the end of a sentence.
export function readTrace(name: string, text: string, packetBits: number): Trace {
  const lines = text.split(/\r?\n/);
  const counts: number[] = [];
  let last = 0;
  lines.forEach((line, i) => {
    const words = line.trim();
    if (words === "" || words.startsWith("#")) return;
    const at = Number(words);
    if (!/^\d+(\.\d+)?$/.test(words) || at < last) {
      throw new Error(`is not a trace: line ${i + 1} is ${JSON.stringify(words.slice(0, 40))}, and must be a time in ms, not before the one above`);
    }
    last = at;
    const bin = Math.floor(at / BIN_MS);
    if (bin >= MOST_BINS) throw new Error(`is longer than ${(MOST_BINS * BIN_MS) / 60_000} minutes`);
    while (counts.length <= bin) counts.push(0);
    counts[bin] += 1;
  });
  if (counts.length === 0) throw new Error("is not a trace: it has no line");
  return { name, rates_mbps: counts.map((each) => Math.max(LEAST_MBPS, (each * packetBits) / (1000 * BIN_MS))) };
}
