// Charts over time: each sender's packets in flight, and the queue with drops.

import uPlot from "uplot";
import { FONT } from "./canvas";
import { LETTERS, type Palette } from "./palette";
import type { Samples } from "./samples";

function axes(palette: Palette, unit: string): uPlot.Axis[] {
  const common = { stroke: palette.faint, font: FONT, grid: { stroke: palette.grid, width: 1 }, ticks: { show: false } };
  return [
    { ...common, values: (_, splits) => splits.map((each) => `${each} s`), space: 70, size: 26 },
    { ...common, label: unit, labelFont: FONT, labelSize: 18, labelGap: 2, size: 46, space: 28 },
  ];
}

const hidden: Partial<uPlot.Options> = {
  legend: { show: false },
  cursor: { show: false },
  select: { show: false, left: 0, top: 0, width: 0, height: 0 },
};

export interface Lines {
  // A function of time, since the link may follow a trace.
  bdpPackets: (timeMs: number) => number;
  bufferPackets: number;
}

// A chart over time, which is redrawn while its element exists.
export class TimeSeriesChart {
  private plot?: uPlot;
  private highest = 10;
  // Ends of the lines of senders that are on.
  private ends: { sender: number; value: number }[] = [];

  constructor(
    private readonly element: HTMLElement,
    private readonly which: "flight" | "queue",
  ) {}

  build(palette: Palette, senders: number): void {
    this.plot?.destroy();
    const series: uPlot.Series[] = [{}];
    const line = (stroke: string, width: number, more: Partial<uPlot.Series> = {}): void => {
      series.push({ stroke, width, points: { show: false }, ...more });
    };
    if (this.which === "flight") {
      for (let i = 0; i < senders; ++i) line(palette.flows[i], 1.75);
      line(palette.text, 1.25, { dash: [6, 4] });
      line(palette.faint, 1.25, { dash: [2, 3] });
    } else {
      line(palette.faint, 1.25, { fill: `${palette.faint}30` });
      line(palette.alarm, 0, { paths: uPlot.paths.bars!({ size: [1, 2, 1], align: 0 }), fill: palette.alarm });
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
        axes: axes(palette, unit),
        series,
        hooks: { draw: [(plot) => this.name(plot, palette)] },
      },
      [[]],
      this.element,
    );
  }

  // Draws each sender's letter at the end of its line, avoiding overlaps.
  private name(plot: uPlot, palette: Palette): void {
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
      ctx.fillStyle = palette.flows[sender];
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
    const seconds = samples.timesMs.map((each) => each / 1000);
    const end = Math.max(seconds.at(-1) ?? 0, windowMs / 1000);
    const share = (besides: number): (number | null)[] =>
      samples.on.map((on, i) => (on > 0 ? (lines.bdpPackets(samples.timesMs[i]) + besides) / on : null));
    const columns =
      this.which === "flight"
        ? [...samples.inFlight, share(0), share(lines.bufferPackets)]
        : [samples.waiting, samples.drops];
    // Of the two reference lines only the first must be visible.
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
