// Properties that all components of the page share, and a hook for drawing.

import { useEffect, useRef } from "preact/hooks";
import type { Palette } from "./palette";
import type { Simulation } from "./simulation";
import type { Dispatch, State } from "./state";

export interface PageProps {
  state: State;
  dispatch: Dispatch;
  simulation: Simulation;
  palette: Palette;
}

// Numbers are redrawn once per this many frames: people do not read faster.
export const READING_FRAMES = 6;

// Calls the latest `draw` once per `every` animation frames.
export function useFrames(every: number, draw: () => void): void {
  const latest = useRef(draw);
  latest.current = draw;
  useEffect(() => {
    let frames = 0;
    let request = 0;
    const next = (): void => {
      if (++frames % every === 0) latest.current();
      request = requestAnimationFrame(next);
    };
    request = requestAnimationFrame(next);
    return () => cancelAnimationFrame(request);
  }, []);
}
