// The page's address, which follows what is set up.

import { fromFragment, type Setup, toFragment } from "./setup";
import type { Store } from "./state";

// None within a report, whose frame is the page itself.
export const HAS_ADDRESS = location.protocol !== "data:";
const MARK = "#s=";
// The address is written once nothing has changed for so long, as a moving slider changes much.
const QUIET_MS = 400;

// The set-up that the address holds, if any, or why it cannot be used.
export async function linked(): Promise<{ setup?: Setup; notice?: string }> {
  const { hash } = location;
  if (!hash.startsWith(MARK)) return {};
  const setup = await fromFragment(hash.slice(MARK.length));
  return setup ? { setup } : { notice: "The address is of another version of the page." };
}

export async function putIntoAddress(setup: Setup): Promise<string> {
  history.replaceState(null, "", MARK + (await toFragment(setup)));
  return location.href;
}

export function keepInAddress(store: Store): void {
  if (!HAS_ADDRESS) return;
  let timer: ReturnType<typeof setTimeout>;
  store.follow(({ catalogue, setup }, before) => {
    if (!catalogue || (setup === before.setup && catalogue === before.catalogue)) return;
    clearTimeout(timer);
    timer = setTimeout(() => void putIntoAddress(setup), QUIET_MS);
  });
}
