// Draws a map of a table's rules over two of its signals.

import { formatShort, prepareCanvas } from "./canvas";
import type { Palette } from "./palette";
import { type Lookup, SIGNALS, signalName } from "./table";

export type ActionPart = "multiple" | "increment" | "intersend";

// From the Cividis colour map, which looks the same with all kinds of colour vision, lightened.
const SCALE = [
  [35, 62, 108],
  [87, 93, 109],
  [135, 129, 120],
  [187, 172, 108],
  [240, 219, 98],
];

function colourAt(share: number): [number, number, number] {
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
  rule: number;
  memory: ArrayLike<number>;
}

const CELLS = 96;
const cells = document.createElement("canvas");
cells.width = CELLS;
cells.height = CELLS;

// The range of an axis that shows all thresholds on a signal.
function axisRange(lookup: Lookup, signal: number, seen: number): [number, number] {
  const values = lookup.table.nodes
    .flatMap((node) => node.thresholds.filter((each) => each.signal === signal).map((each) => each.value))
    .filter((value) => value > 0)
    .concat(seen > 0 ? [seen] : []);
  // RTT ratios are at least 1.
  if (signal === 2) return [1 / 1.03, Math.max(2, ...values) * 1.3];
  const low = Math.min(...values);
  const high = Math.max(...values);
  return values.length === 0 ? [0.1, 10] : [low / 1.6, Math.max(high, low * 2) * 1.6];
}

// A typical value of a signal without senders: 1 for ratios, the median threshold otherwise.
function typicalValue(lookup: Lookup, signal: number): number {
  if (lookup.table.scaleFree) return 1;
  const values = lookup.table.nodes.flatMap((node) => node.thresholds.filter((each) => each.signal === signal).map((each) => each.value));
  return values.sort((a, b) => a - b)[values.length >> 1] ?? 0;
}

// Draws the slice of memory space at the first flow's values of the other signals. Colours span
// `range`, or the values shown, which are returned.
export function drawMap(
  canvas: HTMLCanvasElement,
  palette: Palette,
  lookup: Lookup,
  signals: [number, number],
  by: ActionPart,
  flows: MapFlow[],
  range?: Range,
): Range | undefined {
  const on = prepareCanvas(canvas);
  if (!on) return undefined;
  const { pen, width, height } = on;
  const box = { left: 46, right: width - 10, top: 8, bottom: height - 36 };
  const ranges = signals.map((signal) =>
    axisRange(lookup, signal, Math.max(0, ...flows.map((flow) => flow.memory[signal]))),
  );
  const value = (range: [number, number], share: number): number => range[0] * (range[1] / range[0]) ** share;
  const share = (range: [number, number], at: number): number =>
    Math.min(1, Math.max(0, Math.log(Math.max(at, range[0]) / range[0]) / Math.log(range[1] / range[0])));
  const rules = new Int32Array(CELLS * CELLS);
  const memory = Float64Array.from({ length: SIGNALS }, (_, i) => flows[0]?.memory[i] ?? typicalValue(lookup, i));
  for (let row = 0; row < CELLS; ++row) {
    memory[signals[1]] = value(ranges[1], 1 - (row + 0.5) / CELLS);
    for (let column = 0; column < CELLS; ++column) {
      memory[signals[0]] = value(ranges[0], (column + 0.5) / CELLS);
      rules[row * CELLS + column] = lookup.rule(memory);
    }
  }
  const onScale = (number: number): number => (by === "intersend" ? Math.log(Math.max(number, 0.01)) : number);
  const values = lookup.actions.map((action) => onScale(action[by]));
  const shown = [...new Set(rules)].map((rule) => lookup.actions[rule][by]);
  const shownRange = { low: Math.min(...shown), high: Math.max(...shown) };
  const [low, high] = [onScale((range ?? shownRange).low), onScale((range ?? shownRange).high)];
  const usedRules = new Set(flows.map((flow) => flow.rule));
  const cellWidth = (box.right - box.left) / CELLS;
  const cellHeight = (box.bottom - box.top) / CELLS;
  const image = new ImageData(CELLS, CELLS);
  rules.forEach((rule, place) => {
    const alpha = usedRules.has(rule) ? 255 : 170;
    image.data.set([...colourAt(high > low ? (values[rule] - low) / (high - low) : 0.5), alpha], 4 * place);
  });
  cells.getContext("2d")!.putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(cells, box.left, box.top, box.right - box.left, box.bottom - box.top);
  // Outlines the rules in use.
  for (const flow of flows) {
    pen.strokeStyle = palette.text;
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
  pen.fillStyle = palette.faint;
  pen.textBaseline = "top";
  for (const at of [0, 0.5, 1]) {
    pen.textAlign = at === 0 ? "left" : at === 1 ? "right" : "center";
    pen.fillText(formatShort(value(ranges[0], at)), box.left + at * (box.right - box.left), box.bottom + 5);
  }
  pen.textAlign = "center";
  pen.fillText(signalName(lookup.table, signals[0]), (box.left + box.right) / 2, height - 15);
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const at of [0, 0.5, 1]) {
    pen.fillText(formatShort(value(ranges[1], at)), box.left - 6, box.bottom - at * (box.bottom - box.top) + (at === 0 ? -5 : at === 1 ? 6 : 0));
  }
  pen.save();
  pen.translate(9, (box.top + box.bottom) / 2 + 40);
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "center";
  pen.fillText(signalName(lookup.table, signals[1]), -12, 0);
  pen.restore();
  return shownRange;
}
