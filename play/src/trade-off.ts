// Draws throughput against delay of each sender, with a trail.

import { roundNumbers, roundNumbersOnLogScale, formatShort, prepareCanvas } from "./canvas";
import type { Palette } from "./palette";
import type { Samples } from "./samples";

// The delay axis runs from right to left, as in the papers: better is up and to the right.
export function drawTradeOff(
  canvas: HTMLCanvasElement,
  palette: Palette,
  networks: Samples[],
  rateMbps: number,
  rttMs: number,
): void {
  const on = prepareCanvas(canvas);
  if (!on) return;
  const { pen, width, height } = on;
  const box = { left: 46, right: width - 12, top: 10, bottom: height - 38 };
  const delays = networks.flatMap((each) => each.trails.flatMap((trail) => trail.map((point) => point.delayMs)));
  const maxRatio = Math.max(1.3, ...delays.map((delay) => delay / rttMs)) * 1.1;
  const x = (delayMs: number): number =>
    box.right - ((box.right - box.left) * Math.log(Math.max(delayMs / rttMs, 1))) / Math.log(maxRatio);
  const y = (mbps: number): number => box.bottom - ((box.bottom - box.top) * Math.min(mbps, rateMbps * 1.05)) / (rateMbps * 1.05);
  pen.lineWidth = 1;
  pen.fillStyle = palette.faint;
  pen.strokeStyle = palette.grid;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const mbps of roundNumbers(0, rateMbps * 1.05)) {
    pen.beginPath();
    pen.moveTo(box.left, y(Number(mbps)));
    pen.lineTo(box.right, y(Number(mbps)));
    pen.stroke();
    pen.fillText(mbps, box.left - 6, y(Number(mbps)));
  }
  pen.textAlign = "center";
  pen.textBaseline = "top";
  let lastX = Infinity;
  for (const ms of [formatShort(rttMs), ...roundNumbersOnLogScale(rttMs * 1.0001, rttMs * maxRatio)]) {
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
      pen.strokeStyle = palette.flows[flow];
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
      pen.fillStyle = network === 0 ? palette.flows[flow] : palette.paper;
      pen.fill();
      pen.lineWidth = 2;
      pen.strokeStyle = network === 0 ? palette.paper : palette.flows[flow];
      pen.stroke();
    });
  });
}
