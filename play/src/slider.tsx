// A logarithmic slider, which a fader can move.

import type { Movable } from "./faders";

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

// As a fader has it: where it is, and what moving it does.
export function movable({ label, value, low, high, round, disabled, change }: SliderProps): Movable {
  // It may begin at nothing.
  const floor = low > 0 ? low : high / 1000;
  const place = value <= 0 ? 0 : Math.log(Math.max(value, floor) / floor) / Math.log(high / floor);
  const move = (to: number): void => {
    if (disabled) return;
    const found = to === 0 && low === 0 ? 0 : floor * (high / floor) ** to;
    change(round ? round(found) : Number(found.toPrecision(3)));
  };
  return { label, place, move };
}

export function Slider(props: SliderProps) {
  const { label, value, show, disabled } = props;
  const { place, move } = movable(props);
  return (
    <label class="slider">
      <span>{label}</span>
      <output>{show(value)}</output>
      <input
        type="range"
        min={0}
        max={STEPS}
        step={1}
        value={Math.round(place * STEPS)}
        disabled={disabled}
        aria-label={label}
        aria-valuetext={show(value)}
        onInput={(event) => move(Number(event.currentTarget.value) / STEPS)}
      />
    </label>
  );
}
