// Charts: a job's score over its steps, and the throughput and delay of its epochs.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { FONT, roundNumbers } from "../src/canvas";
import type { Palette } from "../src/palette";
import type { Epoch, History, Point } from "./api";
import { score } from "./format";

export type Over = "step" | "cpu";

interface CurveProps {
  histories: { label: string; points: Point[]; epochs: Epoch[]; sizes: History["sizes"] }[];
  palette: Palette;
  over: Over;
  height?: number;
}

// Draws scores by step as lines, epochs' scores on validation networks as dots, and splits as
// ticks.
export function ScoreCurve({ histories, palette, over, height = 320 }: CurveProps) {
  const container = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = container.current!;
    const columns: [number[], (number | null)[]][] = [];
    const shown = (value: number | null | undefined): string => (value == null ? "" : score(value));
    const series: uPlot.Series[] = [{ label: over === "step" ? "step" : "CPU time, s", value: (_, value) => (value == null ? "" : String(Number(value.toPrecision(4)))) }];
    histories.forEach((each, i) => {
      const colour = palette.flows[i % palette.flows.length];
      const at = (step: number, cpu: number | null): number => (over === "step" ? step : (cpu ?? 0));
      const isSingle = histories.length === 1;
      if (isSingle) {
        columns.push([each.points.map((point) => at(point[0], point[3])), each.points.map((point) => point[1])]);
        series.push({ label: "working table", value: (_, value) => shown(value), stroke: palette.faint, width: 1.25, points: { show: each.points.length < 3 } });
      }
      const kept = each.epochs.filter((epoch) => epoch.score !== null);
      columns.push([kept.map((epoch) => at(epoch.step, epoch.cpu_seconds)), kept.map((epoch) => epoch.score)]);
      series.push({
        label: isSingle ? "epochs, validated" : each.label,
        value: (_, value) => shown(value),
        stroke: colour,
        width: isSingle ? 1 : 1.75,
        points: { show: true, size: isSingle ? 7 : 5, fill: colour },
      });
    });
    const sizes = histories.length === 1 && over === "step" ? histories[0].sizes : [];
    const axis: uPlot.Axis = { stroke: palette.faint, font: FONT, labelFont: FONT, labelSize: 18, grid: { stroke: palette.grid, width: 1 }, ticks: { show: false } };
    const plot = new uPlot(
      {
        width: Math.max(200, element.clientWidth),
        height,
        mode: 1,
        scales: { x: { time: false } },
        axes: [
          { ...axis, label: over === "step" ? "step" : "CPU time, s", size: 34 },
          { ...axis, label: "score", size: 58, values: (_, splits) => splits.map((each) => String(Number(each.toPrecision(6))).replace("-", "−")) },
        ],
        legend: { markers: { fill: (plot, i) => (plot.series[i].stroke as (plot: uPlot, i: number) => string)(plot, i), width: 0 } },
        series,
        hooks: {
          draw: [
            (drawn) => {
              const { ctx } = drawn;
              const foot = drawn.bbox.top + drawn.bbox.height;
              ctx.save();
              ctx.strokeStyle = palette.flows[1];
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
  }, [histories, palette, over, height]);
  const descriptions = histories.map(({ label, epochs, points }) => {
    const last = epochs.filter((each) => each.score !== null).at(-1)?.score ?? points.at(-1)?.[1] ?? null;
    return `${label}: ${epochs.length} epochs, last score ${score(last)}`;
  });
  return <div class="curve" ref={container} role="img" aria-label={`Score. ${descriptions.join("; ")}`} />;
}

// Up to this many points are labelled with their epochs.
const MAX_LABELLED = 16;

interface ParetoProps {
  histories: { label: string; epochs: Epoch[] }[];
  palette: Palette;
}

interface ParetoPoint {
  throughput: number;
  delay: number;
  epoch: Epoch;
}

// Returns the Pareto front: points that no other point dominates in throughput and delay.
function paretoFront(paretoPoints: ParetoPoint[]): Set<ParetoPoint> {
  return new Set(paretoPoints.filter((one) => !paretoPoints.some((other) => other !== one && other.throughput >= one.throughput && other.delay <= one.delay && (other.throughput > one.throughput || other.delay < one.delay))));
}

// Returns the end of an epoch's description: its loss, if it is known.
function lossText(epoch: Epoch): string {
  return epoch.loss_mean === null ? "" : `, loss ${(100 * epoch.loss_mean).toPrecision(3)} %`;
}

// Draws throughput against delay of each epoch's table; better is up and to the right. Points on
// the Pareto front are filled and joined by a line.
export function Pareto({ histories, palette }: ParetoProps) {
  const series = histories.map(({ label, epochs }) => ({
    label,
    paretoPoints: epochs
      .filter((each) => each.throughput_over_link_rate_median !== null && each.delay_over_rtt_median !== null)
      .map((epoch): ParetoPoint => ({ throughput: epoch.throughput_over_link_rate_median!, delay: epoch.delay_over_rtt_median!, epoch })),
  }));
  const all = series.flatMap((each) => each.paretoPoints);
  if (all.length === 0) return <p class="faint">There is a point once an epoch is over.</p>;
  const front = paretoFront(all);
  // Text keeps its size on phones.
  const [width, height] = [innerWidth < 600 ? 360 : 540, 290];
  const box = { left: 64, right: width - 14, top: 10, bottom: height - 40 };
  const paddedRange = (values: number[]): [number, number] => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const room = Math.max((high - low) * 0.08, Math.abs(high) * 0.01, 1e-6);
    return [low - room, high + room];
  };
  const [minThroughput, maxThroughput] = paddedRange(all.map((each) => each.throughput));
  const [minDelay, maxDelay] = paddedRange(all.map((each) => each.delay));
  const x = (delay: number): number => box.right - ((box.right - box.left) * (delay - minDelay)) / (maxDelay - minDelay);
  const y = (throughput: number): number => box.bottom - ((box.bottom - box.top) * (throughput - minThroughput)) / (maxThroughput - minThroughput);
  const line = [...front].sort((a, b) => a.delay - b.delay).map((each) => `${x(each.delay).toFixed(1)},${y(each.throughput).toFixed(1)}`);
  const descriptions = [...front].sort((a, b) => a.delay - b.delay).map((each) => `epoch ${each.epoch.epoch}: throughput ${each.throughput.toPrecision(3)} of the link, delay ${each.delay.toPrecision(3)} times the RTT${lossText(each.epoch)}`);
  return (
    <svg class="pareto" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Throughput against delay of ${all.length} epochs. On the front: ${descriptions.slice(0, 8).join("; ")}`}>
      {roundNumbers(minThroughput, maxThroughput).map((each) => (
        <g key={`y${each}`}>
          <line x1={box.left} x2={box.right} y1={y(Number(each))} y2={y(Number(each))} stroke={palette.grid} />
          <text x={box.left - 6} y={y(Number(each)) + 4} text-anchor="end" fill={palette.faint}>{each}</text>
        </g>
      ))}
      {roundNumbers(minDelay, maxDelay).map((each) => (
        <g key={`x${each}`}>
          <line x1={x(Number(each))} x2={x(Number(each))} y1={box.top} y2={box.bottom} stroke={palette.grid} />
          <text x={x(Number(each))} y={box.bottom + 15} text-anchor="middle" fill={palette.faint}>{each}</text>
        </g>
      ))}
      <text x={(box.left + box.right) / 2} y={height - 6} text-anchor="middle" fill={palette.faint}>delay over RTT (less is to the right)</text>
      <text transform={`translate(16 ${(box.top + box.bottom) / 2}) rotate(-90)`} text-anchor="middle" fill={palette.faint}>throughput over link rate</text>
      <polyline points={line.join(" ")} fill="none" stroke={palette.text} stroke-opacity="0.5" />
      {series.map(({ label, paretoPoints }, i) => paretoPoints.map((each) => (
        <circle key={`${label}${each.epoch.epoch}`} cx={x(each.delay)} cy={y(each.throughput)} r={4} stroke={palette.flows[i % palette.flows.length]} stroke-width="1.5" fill={front.has(each) ? palette.flows[i % palette.flows.length] : "none"}>
          <title>{`${label}, epoch ${each.epoch.epoch}: ${each.throughput.toPrecision(3)} of the link, ${each.delay.toPrecision(3)} × RTT${lossText(each.epoch)}${each.epoch.accepted === false ? ", rolled back" : ""}`}</title>
        </circle>
      )))}
      {series.length === 1 && all.length <= MAX_LABELLED && all.map((each) => (
        <text key={each.epoch.epoch} x={x(each.delay) + 7} y={y(each.throughput) - 6} fill={palette.faint}>{each.epoch.epoch}</text>
      ))}
    </svg>
  );
}
