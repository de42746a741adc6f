// A small score curve for a row of the job list.

import { score } from "./format";

const WIDTH = 110;
const HEIGHT = 26;

export function Sparkline({ values, label }: { values: number[]; label: string }) {
  if (values.length < 2) return <span class="faint">–</span>;
  const low = Math.min(...values);
  const high = Math.max(...values);
  const at = (value: number, i: number): string => {
    const x = 2 + ((WIDTH - 4) * i) / (values.length - 1);
    const y = high > low ? HEIGHT - 3 - ((HEIGHT - 6) * (value - low)) / (high - low) : HEIGHT / 2;
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  };
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} role="img" aria-label={`${label}: from ${score(values[0])} to ${score(values.at(-1)!)}`}>
      <polyline points={values.map(at).join(" ")} fill="none" stroke="currentColor" stroke-width="1.5" />
    </svg>
  );
}
