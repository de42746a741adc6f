// The charts over time of each network.

import { useLayoutEffect, useRef } from "preact/hooks";
import { formatNumber, networkTitles } from "./format";
import { bdpPackets } from "./network";
import { type PageProps, useFrames } from "./page-props";
import { rateMbpsAt } from "./setup";
import { windowMs } from "./simulation";
import { TimeSeriesChart } from "./time-series";

function TimeChart({ which, label, number, state, simulation, palette }: PageProps & { which: "flight" | "queue"; label: string; number: number }) {
  const element = useRef<HTMLDivElement>(null);
  const strip = useRef<TimeSeriesChart>();
  const { setup } = state;
  const { network } = setup;
  const senders = network.senders.length;
  // In a layout effect, so that it precedes the next frame, which may have samples of another
  // number of senders.
  useLayoutEffect(() => {
    const created = new TimeSeriesChart(element.current!, which);
    created.build(palette, senders);
    strip.current = created;
    return () => created.destroy();
  }, [palette, senders]);
  useFrames(1, () => {
    const shown = simulation.samples[number];
    if (!shown) return;
    strip.current?.draw(shown, windowMs(setup), {
      bdpPackets: (timeMs) => bdpPackets(rateMbpsAt(setup, timeMs), network.rtt_ms),
      bufferPackets: network.buffer.packets,
    });
  });
  return <div class={`strip ${which}`} role="img" aria-label={label} ref={element} />;
}

export function TimeCharts(props: PageProps) {
  const { state, simulation } = props;
  const { setup } = state;
  const { network } = setup;
  const titles = networkTitles(state);
  const bdp = bdpPackets(rateMbpsAt(setup, simulation.timeMs), network.rtt_ms);
  // The fair share of each sender that is on, as text.
  const share = (number: number, besides: number): string => {
    const on = simulation.samples[number]?.flows.filter((flow) => flow.on).length ?? 0;
    return on > 0 ? `: ${formatNumber((bdp + besides) / on)}` : "";
  };
  return (
    <section class="strips" aria-label="Charts over time">
      {titles.map((title, number) => (
        <div class="network" key={number}>
          {titles.length > 1 && <h2>{title}</h2>}
          <h3>
            Packets in flight{" "}
            <small>
              <span><i class="dashed" /> fair share of the BDP{share(number, 0)}</span>
              <span><i class="dotted" /> with the buffer{share(number, network.buffer.packets)}</span>
            </small>
          </h3>
          <TimeChart {...props} which="flight" label="Packets in flight of each sender over time" number={number} />
          <h3>Queue and drops <small><span><i class="drops" /> drops</span></small></h3>
          <TimeChart {...props} which="queue" label="Packets that wait, and drops, over time" number={number} />
        </div>
      ))}
    </section>
  );
}
