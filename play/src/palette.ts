// Light and dark palettes, and the colours and letters of senders.

import { useEffect, useMemo, useState } from "preact/hooks";

export function useDark(): boolean {
  const query = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
  const [chosen, choose] = useState(query.matches);
  useEffect(() => {
    const listen = (): void => choose(query.matches);
    query.addEventListener("change", listen);
    return () => query.removeEventListener("change", listen);
  }, []);
  return chosen;
}

export interface Palette {
  text: string;
  faint: string;
  grid: string;
  paper: string;
  alarm: string;
  flows: string[];
}

// Colours of Okabe and Ito, distinguishable with any kind of colour vision.
const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#b4578c", "#2a94cf", "#b07800", "#4d4d4d", "#6a51a3"];
const DARK = ["#56b4e9", "#f08a3c", "#2fc29a", "#e29bc4", "#9ad4f5", "#e6b93d", "#c8c8c8", "#b3a2e0"];

export function paletteFor(isDark: boolean): Palette {
  return isDark
    ? { text: "#e7e9ec", faint: "#9aa3ad", grid: "#2b3138", paper: "#171b20", alarm: "#ff8a7a", flows: DARK }
    : { text: "#1d2329", faint: "#5c6670", grid: "#e6e9ec", paper: "#ffffff", alarm: "#b3261e", flows: LIGHT };
}

export const LETTERS = "ABCDEFGH";
