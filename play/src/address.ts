// Keeps the set-up in the page's address.

import { fromFragment, type Setup, toFragment } from "./setup";
import type { Store } from "./state";

// A page inside a report's frame has no address of its own.
export const HAS_ADDRESS = location.protocol !== "data:";
const MARK = "#s=";
// How long the set-up must be unchanged before the address is updated; a moving slider changes it
// often.
const WRITE_DELAY_MS = 400;

// Returns the set-up in the address, if any, or a notice if it cannot be used.
export async function readAddress(): Promise<{ setup?: Setup; notice?: string }> {
  const { hash } = location;
  if (!hash.startsWith(MARK)) return {};
  const setup = await fromFragment(hash.slice(MARK.length));
  return setup ? { setup } : { notice: "The address is of another version of the page." };
}

export async function writeAddress(setup: Setup): Promise<string> {
  history.replaceState(null, "", MARK + (await toFragment(setup)));
  return location.href;
}

export function followInAddress(store: Store): void {
  if (!HAS_ADDRESS) return;
  let timer: ReturnType<typeof setTimeout>;
  store.follow(({ catalogue, setup }, before) => {
    if (!catalogue || (setup === before.setup && catalogue === before.catalogue)) return;
    clearTimeout(timer);
    timer = setTimeout(() => void writeAddress(setup), WRITE_DELAY_MS);
  });
}
