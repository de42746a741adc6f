// Figures and names as people read them.

import type { Catalogue, Controller } from "./network";
import type { State } from "./state";

export function figure(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);
}

export function titleOf(controller: Controller, catalogue: Catalogue | undefined): string {
  if ("table" in controller) return controller.table;
  return catalogue?.protocols.find((each) => each.name === controller.protocol)?.title ?? controller.protocol;
}

// Titles of the networks that are shown: one, or two where they are compared.
export function networkTitles({ setup: { beside }, catalogue }: State): string[] {
  return ["As chosen", ...(beside ? [`With ${titleOf(beside, catalogue)}`] : [])];
}
