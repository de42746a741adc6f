// Tables and the simulator, which are put into the page where it is made (library/src/remy_farm/analysis/live_page.py).

import { fromJson, toNumbers } from "./table";

function textOf(id: string): string {
  return document.getElementById(id)?.textContent?.trim() ?? "";
}

// As the simulator's numbers, by name. The first is the one that the page is about.
export const TABLES: Record<string, number[]> = Object.fromEntries(
  (JSON.parse(textOf("tables") || "[]") as { name: string; json: unknown }[]).map(({ name, json }) => [
    name,
    toNumbers(fromJson(JSON.stringify(json))),
  ]),
);

export function simulatorBytes(): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(textOf("simulator")), (each) => each.charCodeAt(0));
}
