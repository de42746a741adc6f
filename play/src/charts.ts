// The charts: a strip of packets in flight, one of queue and drops, throughput against delay, and
// the map of rules.

import uPlot from "uplot";
import type { Samples } from "./samples";
import { type Lookup, signalName } from "./table";

export interface Theme {
  text: string;
  faint: string;
  grid: string;
  paper: string;
  alarm: string;
  flows: string[];
}

// Okabe and Ito's colours, which people with any kind of colour vision tell apart.
const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#b4578c", "#2a94cf", "#b07800", "#4d4d4d", "#6a51a3"];
const DARK = ["#56b4e9", "#f08a3c", "#2fc29a", "#e29bc4", "#9ad4f5", "#e6b93d", "#c8c8c8", "#b3a2e0"];

export function theme(isDark: boolean): Theme {
  return isDark
    ? { text: "#e7e9ec", faint: "#9aa3ad", grid: "#2b3138", paper: "#171b20", alarm: "#ff8a7a", flows: DARK }
    : { text: "#1d2329", faint: "#5c6670", grid: "#e6e9ec", paper: "#ffffff", alarm: "#b3261e", flows: LIGHT };
}

export const FONT = "12px system-ui, sans-serif";

// Some four round numbers between two.
export function roundBetween(low: number, high: number): string[] {
  const raw = (high - low) / 4;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((each) => each * unit >= raw * 0.999)!;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => ((first + i) * step).toFixed(digits));
}

// The same where the axis is logarithmic.
function roundOnLogarithm(low: number, high: number): string[] {
  if (high / low < 2.5) return roundBetween(low, high);
  const found: string[] = [];
  for (let unit = 10 ** Math.floor(Math.log10(low)); unit <= high; unit *= 10) {
    for (const each of [1, 1.5, 2, 3, 4, 6, 8]) if (each * unit >= low && each * unit <= high) found.push(String(Number((each * unit).toPrecision(2))));
  }
  return found;
}

function axes(look: Theme, unit: string): uPlot.Axis[] {
  const common = { stroke: look.faint, font: FONT, grid: { stroke: look.grid, width: 1 }, ticks: { show: false } };
  return [
    { ...common, values: (_, splits) => splits.map((each) => `${each} s`), space: 70, size: 26 },
    { ...common, label: unit, labelFont: FONT, labelSize: 18, labelGap: 2, size: 46, space: 28 },
  ];
}

export const LETTERS = "ABCDEFGH";

const hidden: Partial<uPlot.Options> = {
  legend: { show: false },
  cursor: { show: false },
  select: { show: false, left: 0, top: 0, width: 0, height: 0 },
};

export interface Lines {
  // At a time, since a link may follow a trace.
  bdp: (timeMs: number) => number;
  // None where it is endless.
  buffer: number | undefined;
}

// A chart that is drawn anew for as long as its element is there.
export class Strip {
  private plot?: uPlot;
  private highest = 10;
  // Where the lines of those that are on end.
  private ends: { sender: number; value: number }[] = [];

  constructor(
    private readonly element: HTMLElement,
    private readonly which: "flight" | "queue",
  ) {}

  build(look: Theme, senders: number): void {
    this.plot?.destroy();
    const series: uPlot.Series[] = [{}];
    const line = (stroke: string, width: number, more: Partial<uPlot.Series> = {}): void => {
      series.push({ stroke, width, points: { show: false }, ...more });
    };
    if (this.which === "flight") {
      for (let i = 0; i < senders; ++i) line(look.flows[i], 1.75);
      line(look.text, 1.25, { dash: [6, 4] });
      line(look.faint, 1.25, { dash: [2, 3] });
    } else {
      line(look.faint, 1.25, { fill: `${look.faint}30` });
      line(look.alarm, 0, { paths: uPlot.paths.bars!({ size: [1, 2, 1], align: 0 }), fill: look.alarm });
    }
    const scales: uPlot.Scales = {
      x: { time: false },
      y: { range: () => [0, this.highest] },
    };
    const size = { width: this.element.clientWidth, height: this.element.clientHeight };
    const unit = this.which === "flight" ? "packets in flight" : "packets";
    this.plot = new uPlot(
      {
        ...size,
        ...hidden,
        pxAlign: 0,
        padding: [8, 20, 0, 0],
        scales,
        axes: axes(look, unit),
        series,
        hooks: { draw: [(plot) => this.name(plot, look)] },
      },
      [[]],
      this.element,
    );
  }

  // Who it is, at the end of each line; side by side where they meet.
  private name(plot: uPlot, look: Theme): void {
    const { ctx, bbox } = plot;
    const line = 11 * devicePixelRatio;
    let free = Infinity;
    ctx.save();
    ctx.font = `bold ${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    for (const { sender, value } of [...this.ends].sort((a, b) => a.value - b.value)) {
      const y = Math.min(plot.valToPos(value, "y", true), free - line);
      free = y;
      ctx.fillStyle = look.flows[sender];
      ctx.fillText(LETTERS[sender], bbox.left + bbox.width + 6 * devicePixelRatio, Math.max(y, line / 2));
    }
    ctx.restore();
  }

  draw(samples: Samples, windowMs: number, lines: Lines): void {
    const { plot, element } = this;
    if (!plot) return;
    if (plot.width !== element.clientWidth || plot.height !== element.clientHeight) {
      plot.setSize({ width: element.clientWidth, height: element.clientHeight });
    }
    const seconds = samples.times.map((each) => each / 1000);
    const end = Math.max(seconds.at(-1) ?? 0, windowMs / 1000);
    const share = (besides: number | undefined): (number | null)[] =>
      samples.on.map((on, i) => (besides !== undefined && on > 0 ? (lines.bdp(samples.times[i]) + besides) / on : null));
    const columns =
      this.which === "flight"
        ? [...samples.inFlight, share(0), share(lines.buffer)]
        : [samples.waiting, samples.drops];
    // Of the lines beside flows only the first must be seen.
    const seen = this.which === "flight" ? columns.slice(0, -1) : columns;
    const high = Math.max(8, ...seen.map((column) => column.reduce<number>((most, each) => Math.max(most, each ?? 0), 0)));
    this.highest = high * 1.12;
    if (this.which === "flight") {
      this.ends = samples.flows.flatMap((flow, sender) => (flow.on ? [{ sender, value: samples.inFlight[sender].at(-1) ?? 0 }] : []));
    }
    plot.batch(() => {
      plot.setData([seconds, ...columns] as uPlot.AlignedData, true);
      plot.setScale("x", { min: end - windowMs / 1000, max: end });
    });
  }

  destroy(): void {
    this.plot?.destroy();
  }
}

// A canvas with as many pixels as the screen has; none while it has no size.
function surface(canvas: HTMLCanvasElement): { pen: CanvasRenderingContext2D; width: number; height: number } | undefined {
  const { clientWidth: width, clientHeight: height } = canvas;
  const pen = canvas.getContext("2d");
  if (!pen || width < 40 || height < 40) return undefined;
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = FONT;
  return { pen, width, height };
}

const short = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1).replace(/\.0$/, "") : value.toPrecision(2).replace(/\.0$/, "");

// Delay runs from right to left, as in the papers: better is up and to the right.
export function drawTradeOff(
  canvas: HTMLCanvasElement,
  look: Theme,
  networks: Samples[],
  rateMbps: number,
  rttMs: number,
): void {
  const on = surface(canvas);
  if (!on) return;
  const { pen, width, height } = on;
  const box = { left: 46, right: width - 12, top: 10, bottom: height - 38 };
  const last = networks.flatMap((each) => each.trails.flatMap((trail) => trail.map((point) => point.delayMs)));
  const most = Math.max(1.3, ...last.map((delay) => delay / rttMs)) * 1.1;
  const x = (delayMs: number): number =>
    box.right - ((box.right - box.left) * Math.log(Math.max(delayMs / rttMs, 1))) / Math.log(most);
  const y = (mbps: number): number => box.bottom - ((box.bottom - box.top) * Math.min(mbps, rateMbps * 1.05)) / (rateMbps * 1.05);
  pen.lineWidth = 1;
  pen.fillStyle = look.faint;
  pen.strokeStyle = look.grid;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const mbps of roundBetween(0, rateMbps * 1.05)) {
    pen.beginPath();
    pen.moveTo(box.left, y(Number(mbps)));
    pen.lineTo(box.right, y(Number(mbps)));
    pen.stroke();
    pen.fillText(mbps, box.left - 6, y(Number(mbps)));
  }
  pen.textAlign = "center";
  pen.textBaseline = "top";
  let lastX = Infinity;
  for (const ms of [short(rttMs), ...roundOnLogarithm(rttMs * 1.0001, rttMs * most)]) {
    const at = x(Number(ms));
    if (lastX - at < 42 || at < box.left) continue;
    lastX = at;
    pen.beginPath();
    pen.moveTo(at, box.top);
    pen.lineTo(at, box.bottom);
    pen.stroke();
    pen.fillText(ms, Math.min(at, width - 16), box.bottom + 5);
  }
  pen.fillText("RTT, ms (less is to the right)", (box.left + box.right) / 2, height - 16);
  pen.save();
  pen.translate(11, (box.top + box.bottom) / 2);
  pen.rotate(-Math.PI / 2);
  pen.fillText("Mbit/s", 0, -6);
  pen.restore();
  networks.forEach((samples, network) => {
    samples.trails.forEach((trail, flow) => {
      if (trail.length === 0) return;
      pen.strokeStyle = look.flows[flow];
      pen.lineWidth = 1.5;
      pen.lineJoin = "round";
      const parts = 6;
      for (let part = 0; part < parts; ++part) {
        const from = Math.floor((trail.length * part) / parts);
        const to = Math.min(trail.length - 1, Math.floor((trail.length * (part + 1)) / parts));
        pen.globalAlpha = (0.6 * (part + 1)) / parts;
        pen.beginPath();
        for (let i = from; i <= to; ++i) pen.lineTo(x(trail[i].delayMs), y(trail[i].mbps));
        pen.stroke();
      }
      pen.globalAlpha = 1;
      const head = trail[trail.length - 1];
      pen.beginPath();
      pen.arc(x(head.delayMs), y(head.mbps), 5, 0, 2 * Math.PI);
      pen.fillStyle = network === 0 ? look.flows[flow] : look.paper;
      pen.fill();
      pen.lineWidth = 2;
      pen.strokeStyle = network === 0 ? look.paper : look.flows[flow];
      pen.stroke();
    });
  });
}

export type Coloured = "multiple" | "increment" | "intersend";

// From Cividis, which is the same for all kinds of colour vision, lightened.
const SCALE = [
  [35, 62, 108],
  [87, 93, 109],
  [135, 129, 120],
  [187, 172, 108],
  [240, 219, 98],
];

function shade(share: number): [number, number, number] {
  const at = Math.min(Math.max(share, 0), 1) * (SCALE.length - 1);
  const low = Math.min(Math.floor(at), SCALE.length - 2);
  return [0, 1, 2].map((part) =>
    Math.round(SCALE[low][part] + (at - low) * (SCALE[low + 1][part] - SCALE[low][part])),
  ) as [number, number, number];
}

export interface Range {
  low: number;
  high: number;
}

export interface MapFlow {
  colour: string;
  label: string;
  rule: number;
  memory: ArrayLike<number>;
}

const CELLS = 96;
const cells = document.createElement("canvas");
cells.width = CELLS;
cells.height = CELLS;

// Where a table's thresholds lie on a signal, so that the axis shows them all.
function reach(lookup: Lookup, signal: number, seen: number): [number, number] {
  const values = lookup.table.nodes
    .flatMap((node) => node.thresholds.filter((each) => each.signal === signal).map((each) => each.value))
    .filter((value) => value > 0)
    .concat(seen > 0 ? [seen] : []);
  // Of RTTs over the smallest none is below 1.
  if (signal === 2) return [1 / 1.03, Math.max(2, ...values) * 1.3];
  const low = Math.min(...values);
  const high = Math.max(...values);
  return values.length === 0 ? [0.1, 10] : [low / 1.6, Math.max(high, low * 2) * 1.6];
}

// What is usual of a signal where nobody sends: ratios are about 1, times in the middle of the rules.
function usual(lookup: Lookup, signal: number): number {
  if (lookup.table.scaleFree) return 1;
  const values = lookup.table.nodes.flatMap((node) => node.thresholds.filter((each) => each.signal === signal).map((each) => each.value));
  return values.sort((a, b) => a - b)[values.length >> 1] ?? 0;
}

// A slice of the memory at the first flow's other signals. Colours are of the range that is given,
// or of what is shown, which is returned.
export function drawMap(
  canvas: HTMLCanvasElement,
  look: Theme,
  lookup: Lookup,
  signals: [number, number],
  by: Coloured,
  flows: MapFlow[],
  range?: Range,
): Range | undefined {
  const on = surface(canvas);
  if (!on) return undefined;
  const { pen, width, height } = on;
  const box = { left: 46, right: width - 10, top: 8, bottom: height - 36 };
  const ranges = signals.map((signal) =>
    reach(lookup, signal, Math.max(0, ...flows.map((flow) => flow.memory[signal]))),
  );
  const value = (range: [number, number], share: number): number => range[0] * (range[1] / range[0]) ** share;
  const share = (range: [number, number], at: number): number =>
    Math.min(1, Math.max(0, Math.log(Math.max(at, range[0]) / range[0]) / Math.log(range[1] / range[0])));
  const rules = new Int32Array(CELLS * CELLS);
  const memory = Float64Array.from({ length: 9 }, (_, i) => flows[0]?.memory[i] ?? usual(lookup, i));
  for (let row = 0; row < CELLS; ++row) {
    memory[signals[1]] = value(ranges[1], 1 - (row + 0.5) / CELLS);
    for (let column = 0; column < CELLS; ++column) {
      memory[signals[0]] = value(ranges[0], (column + 0.5) / CELLS);
      rules[row * CELLS + column] = lookup.rule(memory);
    }
  }
  const onScale = (figure: number): number => (by === "intersend" ? Math.log(Math.max(figure, 0.01)) : figure);
  const figures = lookup.actions.map((action) => onScale(action[by]));
  const shown = [...new Set(rules)].map((rule) => lookup.actions[rule][by]);
  const own = { low: Math.min(...shown), high: Math.max(...shown) };
  const [low, high] = [onScale((range ?? own).low), onScale((range ?? own).high)];
  const lit = new Set(flows.map((flow) => flow.rule));
  const cellWidth = (box.right - box.left) / CELLS;
  const cellHeight = (box.bottom - box.top) / CELLS;
  const image = new ImageData(CELLS, CELLS);
  rules.forEach((rule, place) => {
    const alpha = lit.has(rule) ? 255 : 170;
    image.data.set([...shade(high > low ? (figures[rule] - low) / (high - low) : 0.5), alpha], 4 * place);
  });
  cells.getContext("2d")!.putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(cells, box.left, box.top, box.right - box.left, box.bottom - box.top);
  // Outlines of the rules in use.
  for (const flow of flows) {
    pen.strokeStyle = look.text;
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (let row = 0; row < CELLS; ++row) {
      for (let column = 0; column < CELLS; ++column) {
        const place = row * CELLS + column;
        if (rules[place] !== flow.rule) continue;
        const left = box.left + column * cellWidth;
        const top = box.top + row * cellHeight;
        const edge = (x1: number, y1: number, x2: number, y2: number): void => {
          pen.moveTo(x1, y1);
          pen.lineTo(x2, y2);
        };
        if (column === 0 || rules[place - 1] !== flow.rule) edge(left, top, left, top + cellHeight);
        if (column === CELLS - 1 || rules[place + 1] !== flow.rule) edge(left + cellWidth, top, left + cellWidth, top + cellHeight);
        if (row === 0 || rules[place - CELLS] !== flow.rule) edge(left, top, left + cellWidth, top);
        if (row === CELLS - 1 || rules[place + CELLS] !== flow.rule) edge(left, top + cellHeight, left + cellWidth, top + cellHeight);
      }
    }
    pen.stroke();
  }
  for (const flow of flows) {
    const x = box.left + share(ranges[0], flow.memory[signals[0]]) * (box.right - box.left);
    const y = box.bottom - share(ranges[1], flow.memory[signals[1]]) * (box.bottom - box.top);
    pen.beginPath();
    pen.arc(x, y, 5.5, 0, 2 * Math.PI);
    pen.fillStyle = flow.colour;
    pen.fill();
    pen.lineWidth = 2;
    pen.strokeStyle = "#fff";
    pen.stroke();
  }
  pen.fillStyle = look.faint;
  pen.textBaseline = "top";
  for (const at of [0, 0.5, 1]) {
    pen.textAlign = at === 0 ? "left" : at === 1 ? "right" : "center";
    pen.fillText(short(value(ranges[0], at)), box.left + at * (box.right - box.left), box.bottom + 5);
  }
  pen.textAlign = "center";
  pen.fillText(signalName(lookup.table, signals[0]), (box.left + box.right) / 2, height - 15);
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const at of [0, 0.5, 1]) {
    pen.fillText(short(value(ranges[1], at)), box.left - 6, box.bottom - at * (box.bottom - box.top) + (at === 0 ? -5 : at === 1 ? 6 : 0));
  }
  pen.save();
  pen.translate(9, (box.top + box.bottom) / 2 + 40);
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "center";
  pen.fillText(signalName(lookup.table, signals[1]), -12, 0);
  pen.restore();
  return own;
}
