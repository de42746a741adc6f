// A logarithmic slider, which a fader can control.

import type { FaderTarget } from "./faders";

export interface SliderProps {
  label: string;
  value: number;
  low: number;
  high: number;
  show: (value: number) => string;
  round?: (value: number) => number;
  disabled?: boolean;
  change: (value: number) => void;
}

const STEPS = 400;

// Returns the slider's label, position and setter for a fader.
export function faderTarget({ label, value, low, high, round, disabled, change }: SliderProps): FaderTarget {
  // A range that starts at 0 has its logarithmic part above a floor.
  const floor = low > 0 ? low : high / 1000;
  const position = value <= 0 ? 0 : Math.log(Math.max(value, floor) / floor) / Math.log(high / floor);
  const move = (to: number): void => {
    if (disabled) return;
    const next = to === 0 && low === 0 ? 0 : floor * (high / floor) ** to;
    change(round ? round(next) : Number(next.toPrecision(3)));
  };
  return { label, position, move };
}

export function Slider(props: SliderProps) {
  const { label, value, show, disabled } = props;
  const { position, move } = faderTarget(props);
  return (
    <label class="slider">
      <span>{label}</span>
      <output>{show(value)}</output>
      <input
        type="range"
        min={0}
        max={STEPS}
        step={1}
        value={Math.round(position * STEPS)}
        disabled={disabled}
        aria-label={label}
        aria-valuetext={show(value)}
        onInput={(event) => move(Number(event.currentTarget.value) / STEPS)}
      />
    </label>
  );
}
