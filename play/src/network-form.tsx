// The form for the link, the traffic and the speed.

import { formatNumber } from "./format";
import type { Link } from "./network";
import type { PageProps } from "./page-props";
import { rateMbpsAt } from "./setup";
import { Slider, type SliderProps } from "./slider";

// The sliders, in the order in which faders are assigned.
export function networkSliders({ state, dispatch, simulation }: PageProps): SliderProps[] {
  const { running, setup } = state;
  const { network, speed, trace } = setup;
  const { rtt_ms, buffer, loss_probability, measurement } = network;
  const changeLink = (change: Partial<Link>): void => dispatch({ type: "change link", change });
  const { achievedSpeed } = simulation;
  const isRemy = network.senders.every((each) => "table" in each);
  const isBehind = running && speed > 0 && achievedSpeed < speed * 0.8;
  return [
    {
      label: "Link rate",
      value: rateMbpsAt(setup, simulation.timeMs),
      low: 0.3,
      high: 300,
      disabled: trace !== undefined,
      show: (value) => `${formatNumber(value)} Mbit/s`,
      change: (value) => changeLink({ rate_mbps: value }),
    },
    {
      label: "RTT",
      value: rtt_ms,
      low: 5,
      high: 500,
      show: (value) => `${formatNumber(value)} ms`,
      change: (value) => changeLink({ rtt_ms: value }),
    },
    {
      label: "Buffer",
      value: buffer.packets,
      low: 0,
      high: 10000,
      round: Math.round,
      show: (value) => `${value} packets`,
      change: (packets) => changeLink({ buffer: { packets } }),
    },
    {
      label: "Loss",
      value: loss_probability * 100,
      low: 0,
      high: 20,
      show: (value) => `${formatNumber(value)} %`,
      change: (value) => changeLink({ loss_probability: value / 100 }),
    },
    {
      label: "Jitter of clocks",
      value: measurement.jitter.exponential_mean_ms,
      low: 0,
      high: 50,
      disabled: !isRemy,
      show: (value) => (isRemy ? `${formatNumber(value)} ms` : "RemyCCs only"),
      change: (value) => dispatch({ type: "change network", change: { measurement: { jitter: { exponential_mean_ms: value } } } }),
    },
    {
      label: "Speed",
      value: speed,
      low: 0,
      high: 50,
      show: (value) => `${formatNumber(value)}×${isBehind ? `, here ${formatNumber(achievedSpeed)}×` : ""}`,
      change: (value) => dispatch({ type: "speed", speed: value }),
    },
  ];
}

export function LinkForm(props: PageProps) {
  const { state, dispatch } = props;
  const { network, trace } = state.setup;
  return (
    <>
      <h2>Link</h2>
      {networkSliders(props).map((each) => <Slider key={each.label} {...each} />)}
      {trace && (
        <p class="trace">Trace: {trace.name} <button type="button" onClick={() => dispatch({ type: "begin", change: { trace: undefined } })}>Leave it</button></p>
      )}
      <label class="choice">
        <span>Queue</span>
        <select value={network.queue} onChange={(event) => dispatch({ type: "change link", change: { queue: event.currentTarget.value } })}>
          {state.catalogue?.queues.map((each) => <option value={each.name}>{each.title}</option>)}
        </select>
      </label>
    </>
  );
}

export function TrafficForm({ state, dispatch }: PageProps) {
  const { seed, network } = state.setup;
  const { exponential_time, mean_off_ms } = network.traffic;
  const slider = (label: string, meanMs: number, change: (meanMs: number) => Partial<typeof network.traffic>) => (
    <Slider
      label={label}
      value={meanMs / 1000}
      low={0.1}
      high={100}
      show={(value) => `${formatNumber(value)} s`}
      change={(value) => dispatch({ type: "change network", change: { traffic: { ...network.traffic, ...change(value * 1000) } } })}
    />
  );
  return (
    <details>
      <summary>Coming and going, seed</summary>
      {slider("Mean time on", exponential_time.mean_ms, (mean_ms) => ({ exponential_time: { mean_ms } }))}
      {slider("Mean time off", mean_off_ms, (meanMs) => ({ mean_off_ms: meanMs }))}
      <label class="choice">
        <span>Seed</span>
        <input
          type="number"
          min={0}
          max={4294967295}
          value={seed}
          onChange={(event) => dispatch({ type: "begin", change: { seed: Math.max(0, Math.floor(Number(event.currentTarget.value)) || 0) } })}
        />
      </label>
    </details>
  );
}
