// Throughput against delay, as a chart and in numbers.

import { useRef } from "preact/hooks";
import { formatNumber, networkTitles } from "./format";
import { LETTERS } from "./palette";
import { type PageProps, useFrames } from "./page-props";
import { drawTradeOff } from "./trade-off";

export function TradeOffChart({ state, simulation, palette }: PageProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { network, trace } = state.setup;
  const titles = networkTitles(state);
  useFrames(1, () => {
    const rateMbps = trace ? Math.max(...trace.rates_mbps) : network.rate_mbps;
    drawTradeOff(canvas.current!, palette, simulation.samples, rateMbps, network.rtt_ms);
  });
  return (
    <>
      <h3>Throughput against delay {titles.length > 1 && <small><span><i class="full" /> {titles[0]}</span><span><i class="hollow" /> {titles[1]}</span></small>}</h3>
      <canvas class="trade" role="img" aria-label="Throughput against delay of each sender, with a trail" ref={canvas} />
    </>
  );
}

const HEADINGS = ["Sender", "Mbit/s", "RTT, ms", "Window", "Lost", "Rule"];

export function SenderNumbers({ state, simulation, palette }: PageProps) {
  const titles = networkTitles(state);
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Senders in numbers">
      {titles.map((title, number) => {
        const samples = simulation.samples[number];
        return (
          <table key={number}>
            {titles.length > 1 && <caption>{title}</caption>}
            <thead><tr>{HEADINGS.map((each) => <th scope="col">{each}</th>)}</tr></thead>
            <tbody>
              {state.setup.network.senders.map((_, i) => {
                const flow = samples?.flows[i];
                const on = flow?.on ? flow : undefined;
                const head = on && samples.trails[i]?.at(-1);
                return (
                  <tr key={i} class={on ? "" : "off"}>
                    <th scope="row"><i class="dot" style={`background:${palette.flows[i]}`} />{LETTERS[i]}</th>
                    <td>{head ? formatNumber(head.mbps) : "–"}</td>
                    <td>{head ? formatNumber(head.delayMs) : "–"}</td>
                    <td>{on ? formatNumber(on.windowPackets) : "–"}</td>
                    <td>{flow?.lost ?? 0}</td>
                    <td>{on && on.rule >= 0 ? on.rule : "–"}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        );
      })}
    </div>
  );
}
