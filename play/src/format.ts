// Formats numbers and names.

import type { Catalogue, Controller } from "./network";
import type { State } from "./state";

export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);
}

export function titleOf(controller: Controller, catalogue: Catalogue | undefined): string {
  if ("table" in controller) return controller.table;
  return catalogue?.protocols.find((each) => each.name === controller.protocol)?.title ?? controller.protocol;
}

// Titles of the shown networks: one, or two in a comparison.
export function networkTitles({ setup: { beside }, catalogue }: State): string[] {
  return ["As chosen", ...(beside ? [`With ${titleOf(beside, catalogue)}`] : [])];
}
