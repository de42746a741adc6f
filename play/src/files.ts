// Reads files that are opened or dropped onto the page (tables, recordings and traces), and saves
// recordings.

import { PACKET_BITS } from "./network";
import type { RecordingFile } from "./recording";
import { setupFrom } from "./setup";
import { type Action, notify } from "./state";
import { fromDna, fromJson, toNumbers } from "./table";
import { BIN_MS, readTrace } from "./trace";

export const FILE_EXTENSIONS = ".json,.dna,.trace,.txt,.up,.down,.pps";

function replayAction({ state, recording }: RecordingFile): Action {
  const setup = setupFrom(state);
  if (!setup) throw new Error("is a recording of another version of the page");
  return { type: "replay", setup, recording, notice: "Replaying." };
}

// Reads a file and returns the action that opens it, or a notice if it is invalid.
export async function readFile(file: File): Promise<Action> {
  const { name } = file;
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const text = name.endsWith(".dna") ? "" : new TextDecoder().decode(bytes);
    if (name.endsWith(".json")) {
      const tree = JSON.parse(text);
      if (tree.kind === "remy-farm recording") return replayAction(tree);
    }
    if (/\.(trace|txt|up|down|pps)$/.test(name)) {
      const trace = readTrace(name, text, PACKET_BITS);
      const seconds = (trace.rates_mbps.length * BIN_MS) / 1000;
      return { type: "begin", change: { trace }, notice: `The link's rate follows ${name}, which lasts ${seconds} s and then repeats.` };
    }
    const table = text ? fromJson(text) : fromDna(bytes);
    return { type: "open table", name: name.replace(/\.(json|dna)$/, ""), numbers: toNumbers(table) };
  } catch (error) {
    return notify(`${name} ${error instanceof Error ? error.message : error}.`);
  }
}

export function save(file: RecordingFile): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(file)], { type: "application/json" }));
  link.download = "live-network.json";
  link.click();
}
