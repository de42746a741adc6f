// Curves: a small one for a row of the list, and a job's score over its steps.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Theme } from "../src/charts";
import type { Epoch, History, Point } from "./api";
import { score } from "./words";

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

export type Over = "step" | "cpu";

interface CurveProps {
  histories: { label: string; points: Point[]; epochs: Epoch[]; sizes: History["sizes"] }[];
  look: Theme;
  over: Over;
  height?: number;
}

// Scores by step as lines, those of epochs on validation networks as dots, divisions as ticks.
export function ScoreCurve({ histories, look, over, height = 320 }: CurveProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current!;
    const columns: [number[], (number | null)[]][] = [];
    const series: uPlot.Series[] = [{ label: over === "step" ? "step" : "CPU s" }];
    histories.forEach((each, i) => {
      const colour = look.flows[i % look.flows.length];
      const at = (step: number, cpu: number | null): number => (over === "step" ? step : (cpu ?? 0));
      const isOne = histories.length === 1;
      if (isOne) {
        columns.push([each.points.map((point) => at(point[0], point[3])), each.points.map((point) => point[1])]);
        series.push({ label: "working table", stroke: look.faint, width: 1.25, points: { show: each.points.length < 3 } });
      }
      const kept = each.epochs.filter((epoch) => epoch.score !== null);
      columns.push([kept.map((epoch) => at(epoch.step, epoch.cpu_seconds)), kept.map((epoch) => epoch.score)]);
      series.push({
        label: isOne ? "epochs, validated" : each.label,
        stroke: colour,
        width: isOne ? 1 : 1.75,
        points: { show: true, size: isOne ? 7 : 5, fill: colour },
      });
    });
    const sizes = histories.length === 1 && over === "step" ? histories[0].sizes : [];
    const plot = new uPlot(
      {
        width: Math.max(200, element.clientWidth),
        height,
        mode: 1,
        scales: { x: { time: false } },
        axes: [
          { stroke: look.faint, grid: { stroke: look.grid, width: 1 }, label: over === "step" ? "step" : "CPU time, s", labelSize: 18, size: 34 },
          { stroke: look.faint, grid: { stroke: look.grid, width: 1 }, label: "score", labelSize: 18, size: 62 },
        ],
        series,
        hooks: {
          draw: [
            (drawn) => {
              const { ctx } = drawn;
              const foot = drawn.bbox.top + drawn.bbox.height;
              ctx.save();
              ctx.strokeStyle = look.flows[1];
              ctx.lineWidth = 1.5 * devicePixelRatio;
              for (const [step] of sizes) {
                const x = drawn.valToPos(step, "x", true);
                ctx.beginPath();
                ctx.moveTo(x, foot);
                ctx.lineTo(x, foot - 9 * devicePixelRatio);
                ctx.stroke();
              }
              ctx.restore();
            },
          ],
        },
      },
      uPlot.join(columns.map(([x, y]) => [x, y]) as uPlot.AlignedData[]) ?? [[]],
      element,
    );
    const sized = new ResizeObserver(() => plot.setSize({ width: Math.max(200, element.clientWidth), height }));
    sized.observe(element);
    return () => {
      sized.disconnect();
      plot.destroy();
    };
  }, [histories, look, over, height]);
  const words = histories.map(({ label, epochs, points }) => {
    const last = epochs.filter((each) => each.score !== null).at(-1)?.score ?? points.at(-1)?.[1] ?? null;
    return `${label}: ${epochs.length} epochs, last score ${score(last)}`;
  });
  return <div class="curve" ref={place} role="img" aria-label={`Score. ${words.join("; ")}`} />;
}
