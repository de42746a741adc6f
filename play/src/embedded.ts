// Tables and the simulator that are embedded in the page
// (library/src/remy_farm/analysis/live_page.py).

import { fromJson, toNumbers } from "./table";

function textOf(id: string): string {
  return document.getElementById(id)?.textContent?.trim() ?? "";
}

// Tables by name, in the simulator's number format. The first is the subject of the page.
export const TABLES: Record<string, number[]> = Object.fromEntries(
  (JSON.parse(textOf("tables") || "[]") as { name: string; json: unknown }[]).map(({ name, json }) => [
    name,
    toNumbers(fromJson(JSON.stringify(json))),
  ]),
);

export function simulatorBytes(): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(textOf("simulator")), (each) => each.charCodeAt(0));
}
