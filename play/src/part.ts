// Parts of the page: the properties that all of them have, and the frames in which they draw.

import { useEffect, useRef } from "preact/hooks";
import type { Theme } from "./look";
import type { Simulation } from "./simulation";
import type { Dispatch, State } from "./state";

export interface PartProps {
  state: State;
  dispatch: Dispatch;
  simulation: Simulation;
  look: Theme;
}

// Figures change once in so many frames: people do not read faster.
export const READING_FRAMES = 6;

// Draws once in so many of the browser's frames, as the newest rendering says.
export function useFrames(every: number, draw: () => void): void {
  const newest = useRef(draw);
  newest.current = draw;
  useEffect(() => {
    let frames = 0;
    let request = 0;
    const next = (): void => {
      if (++frames % every === 0) newest.current();
      request = requestAnimationFrame(next);
    };
    request = requestAnimationFrame(next);
    return () => cancelAnimationFrame(request);
  }, []);
}
