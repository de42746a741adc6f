// Charts over time: packets in flight of each sender, and packets that wait, with drops.

import uPlot from "uplot";
import { FONT } from "./canvas";
import { LETTERS, type Theme } from "./look";
import type { Samples } from "./samples";

function axes(look: Theme, unit: string): uPlot.Axis[] {
  const common = { stroke: look.faint, font: FONT, grid: { stroke: look.grid, width: 1 }, ticks: { show: false } };
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
  // At a time, since a link may follow a trace.
  bdpPackets: (timeMs: number) => number;
  bufferPackets: number;
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
    const seconds = samples.timesMs.map((each) => each / 1000);
    const end = Math.max(seconds.at(-1) ?? 0, windowMs / 1000);
    const share = (besides: number): (number | null)[] =>
      samples.on.map((on, i) => (on > 0 ? (lines.bdpPackets(samples.timesMs[i]) + besides) / on : null));
    const columns =
      this.which === "flight"
        ? [...samples.inFlight, share(0), share(lines.bufferPackets)]
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
