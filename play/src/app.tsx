// The page: what it shows, and what can be done to the network.

import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { LETTERS, theme, useDark } from "./look";
import { type Coloured, drawMap, type MapFlow, type Range } from "./rule-map";
import { Samples } from "./samples";
import type { Named } from "./simulator";
import { fromFragment, MAXIMUM_SENDERS, ordinary, PACKET_BITS, presets, type Sender, type State, type Switch, toFragment } from "./state";
import { Faders, type Movable } from "./faders";
import { Strip } from "./strip";
import { fromDna, fromJson, fromNumbers, Lookup, signalName, toNumbers, unitOf } from "./table";
import { BIN_MS, readTrace } from "./trace";
import { drawTradeOff } from "./trade-off";
import { STEP_MS, type Order, type Recording, type Report } from "./worker";
import workerSource from "worker-source";

// A table that the page brings along (services/src/remy_cli/play.py).
interface Brought {
  name: string;
  json: unknown;
}

function data(id: string): string {
  return document.getElementById(id)?.textContent?.trim() ?? "";
}

const brought: Record<string, number[]> = Object.fromEntries(
  (JSON.parse(data("tables") || "[]") as Brought[]).map(({ name, json }) => [
    name,
    toNumbers(fromJson(JSON.stringify(json))),
  ]),
);
const names = Object.keys(brought);
const first = names[0] ?? "";
const GROUPS = presets(first);
const PRESETS = Object.values(GROUPS).flat();

const WINDOW_MS = 10_000;
// None within a report, whose frame is the page itself.
const HAS_ADDRESS = location.protocol !== "data:";

// Now, or at a time of a trace.
function rateAt({ rateMbps, trace }: State, timeMs: number): number {
  return trace ? trace.rates[Math.floor(timeMs / BIN_MS) % trace.rates.length] : rateMbps;
}

const tablesOf = (state: State): Record<string, number[]> => ({ ...brought, ...state.tables });

function linkNumbers(state: State, queues: Named[]): number[] {
  const rateMbps = rateAt(state, 0);
  const queue = queues.findIndex((each) => each.name === state.queue);
  // AQMs must have room for a packet.
  const buffer = state.queue === "drop-tail" || state.buffer < 0 ? state.buffer : Math.max(1, state.buffer);
  return [(rateMbps * 1000) / PACKET_BITS, state.rttMs, buffer, state.loss, Math.max(0, queue)];
}

function recordingOf(state: State, protocols: Named[], queues: Named[]): Recording {
  const tables = tablesOf(state);
  // One that nobody runs may be one that the simulator refused.
  const run = new Set([state.beside, ...state.senders.map((each) => each.runs)]);
  const order = Object.keys(tables).filter((each) => run.has(`table:${each}`));
  const number = (runs: string): number => {
    if (runs.startsWith("table:")) return order.indexOf(runs.slice(6));
    return -1 - Math.max(0, protocols.findIndex((each) => each.name === runs));
  };
  const network = (runs: (sender: Sender) => string): number[] => [
    state.seed,
    ...linkNumbers(state, queues),
    // Only RemyCCs' own clocks know jitter.
    state.senders.every((each) => each.runs.startsWith("table:")) ? state.jitterMs : 0,
    state.onMs,
    state.offMs,
    state.senders.length,
    ...state.senders.map((each) => number(runs(each))),
  ];
  const networks = [network((each) => each.runs)];
  if (state.beside) {
    networks.push(network((each) => (each.runs.startsWith("table:") ? state.beside : each.runs)));
  }
  return {
    tables: order.map((each) => tables[each]),
    networks,
    senders: state.senders.length,
    rates: state.trace?.rates.map((each) => (each * 1000) / PACKET_BITS),
    events: state.senders.map((each, sender) => ({ step: 0, event: { kind: "switch", sender, how: each.how } })),
    steps: 0,
  };
}

// Those that the table looks at.
function axesOf(lookup: Lookup, wanted: [number, number]): [number, number] {
  const usual = lookup.table.signals.filter((each) => each < 4);
  return wanted.map((each, axis) => (usual.includes(each) ? each : usual[Math.min(axis, usual.length - 1)])) as [number, number];
}

interface RemySender {
  network: number;
  sender: number;
  runs: string;
}

// Who runs a table, in the network and in the one beside it.
function remySenders({ senders, beside }: State): RemySender[] {
  const run = (network: number, runs: (sender: Sender) => string): RemySender[] =>
    senders.map((each, sender) => ({ network, sender, runs: runs(each) })).filter((each) => each.runs.startsWith("table:"));
  const here = run(0, (each) => each.runs);
  return [...here, ...(beside ? run(1, (each) => (each.runs.startsWith("table:") ? beside : each.runs)) : [])];
}

// The same; the one whose slice of the memory is shown is the first.
function pickedFirst(state: State, place: number): RemySender[] {
  const all = remySenders(state);
  const picked = all.find((each) => placeOf(each) === place);
  return picked ? [picked, ...all.filter((each) => each !== picked)] : all;
}

const placeOf = ({ network, sender }: RemySender): number => network * MAXIMUM_SENDERS + sender;

const number = (value: number): string =>
  !Number.isFinite(value) ? "–" : Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);

interface SliderProps {
  label: string;
  value: number;
  low: number;
  high: number;
  logarithmic?: boolean;
  show: (value: number) => string;
  round?: (value: number) => number;
  disabled?: boolean;
  change: (value: number) => void;
}

const STEPS = 400;

// As a fader has it: where it is, and what moving it does.
function movable({ label, value, low, high, logarithmic, round, disabled, change }: SliderProps): Movable {
  // A logarithmic one may begin at nothing.
  const floor = low > 0 ? low : high / 1000;
  const place = logarithmic ? (value <= 0 ? 0 : Math.log(Math.max(value, floor) / floor) / Math.log(high / floor)) : (value - low) / (high - low);
  const move = (to: number): void => {
    if (disabled) return;
    const linear = low + (high - low) * to;
    const found = !logarithmic ? linear : to === 0 && low === 0 ? 0 : floor * (high / floor) ** to;
    change(round ? round(found) : Number(found.toPrecision(3)));
  };
  return { label, place, move };
}

function Slider(props: SliderProps) {
  const { label, value, show, disabled } = props;
  const { place, move } = movable(props);
  return (
    <label class="slider">
      <span>{label}</span>
      <output>{show(value)}</output>
      <input
        type="range"
        min={0}
        max={STEPS}
        step={1}
        value={Math.round(place * STEPS)}
        disabled={disabled}
        aria-label={label}
        aria-valuetext={show(value)}
        onInput={(event) => move(Number(event.currentTarget.value) / STEPS)}
      />
    </label>
  );
}

function Page() {
  const dark = useDark();
  const look = useMemo(() => theme(dark), [dark]);
  const [state, setState] = useState<State>({ ...ordinary, ...PRESETS[0].change });
  const [known, setKnown] = useState<{ protocols: Named[]; queues: Named[] }>();
  const [running, setRunning] = useState(true);
  const [notice, setNotice] = useState("");
  const [achieved, setAchieved] = useState(1);
  const [frame, setFrame] = useState(0);
  const [axes, setAxes] = useState<[number, number]>([3, 2]);
  const [coloured, setColoured] = useState<Coloured>("increment");
  const [scale, setScale] = useState<Range>();
  const [mapped, setMapped] = useState(0);
  const worker = useRef<Worker>();
  const samples = useRef<Samples[]>([]);
  const run = useRef(0);
  const pending = useRef<((report: Report) => void) | undefined>();
  const elements = useRef<Record<string, HTMLElement | null>>({});
  const strips = useRef<Strip[]>([]);
  const now = useRef({ state, look, axes, coloured, mapped });
  now.current = { state, look, axes, coloured, mapped };
  const order = (each: Order): void => worker.current?.postMessage(each);
  const tables = tablesOf(state);
  const lookups = useRef(new Map<string, Lookup>());
  const lookupOf = (runs: string): Lookup | undefined => {
    if (!runs.startsWith("table:")) return undefined;
    const numbers = tablesOf(now.current.state)[runs.slice(6)];
    if (!numbers) return undefined;
    let found = lookups.current.get(runs);
    if (!found) lookups.current.set(runs, (found = new Lookup(fromNumbers(numbers))));
    return found;
  };

  const begin = (next: State, recording?: Recording, what = known): void => {
    setState(next);
    if (!what) return;
    const made = recording ?? recordingOf(next, what.protocols, what.queues);
    samples.current = made.networks.map(() => new Samples(made.senders));
    run.current += 1;
    setNotice("");
    order({ kind: "start", recording: made, run: run.current });
  };
  const changeLink = (change: Partial<State>): void => {
    const next = { ...state, ...change };
    setState(next);
    if (known) order({ kind: "event", event: { kind: "link", numbers: linkNumbers(next, known.queues) } });
  };
  const switchSender = (sender: number, how: Switch): void => {
    setState({ ...state, senders: state.senders.map((each, i) => (i === sender ? { ...each, how } : each)) });
    order({ kind: "event", event: { kind: "switch", sender, how } });
  };

  // The worker, for as long as the page is there.
  useEffect(() => {
    const made = new Worker(URL.createObjectURL(new Blob([workerSource], { type: "text/javascript" })));
    worker.current = made;
    made.onmessage = async ({ data: report }: MessageEvent<Report>) => {
      if (report.kind === "loaded") {
        setKnown(report);
        const linked = await fromFragment(location.hash.replace(/^#s=/, ""));
        begin(linked ?? now.current.state, undefined, report);
      } else if (report.kind === "samples") {
        if (report.run === run.current) {
          const windowMs = WINDOW_MS * Math.max(1, now.current.state.speed);
          report.samples.forEach((each, i) => samples.current[i]?.add(each, windowMs));
          setAchieved(report.achieved);
        }
      } else if (report.kind === "refused") {
        setNotice(report.sentence);
      } else {
        if (report.kind === "replayed") setNotice(`Replayed to the same end: digest ${report.digests.join(", ")}.`);
        pending.current?.(report);
      }
    };
    const bytes = Uint8Array.from(atob(data("simulator")), (each) => each.charCodeAt(0));
    WebAssembly.compile(bytes).then((module) => made.postMessage({ kind: "load", module } satisfies Order), (error) => setNotice(String(error)));
    return () => made.terminate();
  }, []);

  useEffect(() => order({ kind: "speed", speed: running ? state.speed : 0 }), [running, state.speed, known]);

  // What a link to the page holds follows what is set up.
  useEffect(() => {
    if (!known || !HAS_ADDRESS) return;
    const timer = setTimeout(async () => history.replaceState(null, "", `#s=${await toFragment(state)}`), 400);
    return () => clearTimeout(timer);
  }, [state, known]);

  const compared = state.beside !== "";
  useEffect(() => {
    strips.current.forEach((each) => each.destroy());
    const made = ["flight0", "queue0", ...(compared ? ["flight1", "queue1"] : [])]
      .filter((id) => elements.current[id])
      .map((id) => {
        const strip = new Strip(elements.current[id]!, id.startsWith("flight") ? "flight" : "queue");
        strip.build(look, state.senders.length);
        return strip;
      });
    strips.current = made;
  }, [look, state.senders.length, compared]);

  useEffect(() => {
    let going = true;
    let frames = 0;
    const draw = (): void => {
      if (!going) return;
      const { state, look, axes, coloured, mapped } = now.current;
      const windowMs = WINDOW_MS * Math.max(1, state.speed);
      const lines = {
        bdp: (timeMs: number) => (rateAt(state, timeMs) * 1000 * state.rttMs) / PACKET_BITS,
        buffer: state.buffer >= 0 ? state.buffer : undefined,
      };
      strips.current.forEach((strip, i) => {
        const shown = samples.current[i >> 1];
        if (shown) strip.draw(shown, windowMs, lines);
      });
      const trade = elements.current.trade as HTMLCanvasElement | null;
      if (trade) drawTradeOff(trade, look, samples.current, state.trace ? Math.max(...state.trace.rates) : state.rateMbps, state.rttMs);
      // People do not read faster.
      if (++frames % 6 === 0) {
        const canvas = elements.current.map as HTMLCanvasElement | null;
        const remys = pickedFirst(state, mapped);
        const [shown] = remys;
        const lookup = shown && lookupOf(shown.runs);
        const seen = shown && samples.current[shown.network];
        if (canvas && lookup && seen) {
          const flows: MapFlow[] = [];
          for (const each of remys) {
            const flow = seen.flows[each.sender];
            if (each.network !== shown.network || each.runs !== shown.runs || !flow?.on || flow.rule < 0) continue;
            flows.push({ colour: look.flows[each.sender], label: LETTERS[each.sender], rule: flow.rule, memory: flow.memory });
          }
          setScale(drawMap(canvas, look, lookup, axesOf(lookup, axes), coloured, flows));
        }
        setFrame((before) => before + 1);
      }
      requestAnimationFrame(draw);
    };
    requestAnimationFrame(draw);
    return () => {
      going = false;
    };
  }, []);

  const load = async (file: File): Promise<void> => {
    try {
      const bytes = new Uint8Array(await file.arrayBuffer());
      const text = file.name.endsWith(".dna") ? "" : new TextDecoder().decode(bytes);
      if (file.name.endsWith(".json") && JSON.parse(text).kind === "remy-farm recording") {
        const kept = JSON.parse(text);
        begin(kept.state, kept.recording);
        setNotice("Replaying.");
        return;
      }
      if (/\.(trace|txt|up|down|pps)$/.test(file.name)) {
        const trace = readTrace(file.name, text, PACKET_BITS);
        begin({ ...state, trace });
        setNotice(`The link's rate follows ${file.name}: ${(trace.rates.length * BIN_MS) / 1000} s, then from its beginning.`);
        return;
      }
      const table = text ? fromJson(text) : fromDna(bytes);
      const numbers = toNumbers(table);
      const name = file.name.replace(/\.(json|dna)$/, "");
      lookups.current.delete(`table:${name}`);
      const runs = `table:${name}`;
      const senders = state.senders.some((each) => each.runs.startsWith("table:"))
        ? state.senders.map((each) => (each.runs.startsWith("table:") ? { ...each, runs } : each))
        : [...state.senders.slice(0, MAXIMUM_SENDERS - 1), { runs, how: 1 as Switch }];
      begin({ ...state, tables: { ...state.tables, [name]: numbers }, senders });
    } catch (error) {
      setNotice(`${file.name} ${error instanceof Error ? error.message : error}.`);
    }
  };
  const record = (): void => {
    pending.current = (report) => {
      if (report.kind !== "recording") return;
      const kept = { kind: "remy-farm recording", state, recording: report.recording, digests: report.digests };
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([JSON.stringify(kept)], { type: "application/json" }));
      link.download = "live-network.json";
      link.click();
      setNotice(`Kept ${(report.recording.steps * STEP_MS) / 1000} s; digest ${report.digests.join(", ")}. Drop the file here to see it again.`);
    };
    order({ kind: "record" });
  };
  const replay = (): void => {
    pending.current = (report) => {
      if (report.kind === "recording") begin(state, report.recording);
    };
    order({ kind: "record" });
  };

  const options = (
    <>
      {Object.keys(tables).length > 0 && (
        <optgroup label="RemyCCs">
          {Object.keys(tables).map((name) => <option value={`table:${name}`}>{name}</option>)}
        </optgroup>
      )}
      <optgroup label="Protocols">
        {known?.protocols.map((each) => <option value={each.name}>{each.title}</option>)}
      </optgroup>
    </>
  );
  const place = (id: string) => (element: HTMLElement | null): void => {
    elements.current[id] = element;
  };
  const flows = samples.current[0]?.flows ?? [];
  const isRemy = state.senders.every((each) => each.runs.startsWith("table:"));
  const rateNow = rateAt(state, samples.current[0]?.times.at(-1) ?? 0);
  const sliders: SliderProps[] = [
    { label: "Link rate", value: rateNow, low: 0.3, high: 300, logarithmic: true, disabled: state.trace !== undefined, show: (value) => `${number(value)} Mbit/s`, change: (rateMbps) => changeLink({ rateMbps }) },
    { label: "RTT", value: state.rttMs, low: 5, high: 500, logarithmic: true, show: (value) => `${number(value)} ms`, change: (rttMs) => changeLink({ rttMs }) },
    { label: "Buffer", value: state.buffer, low: 0, high: 10000, logarithmic: true, round: Math.round, show: (value) => (value < 0 ? "endless" : `${value} packets`), change: (buffer) => changeLink({ buffer }) },
    { label: "Loss", value: state.loss * 100, low: 0, high: 20, logarithmic: true, show: (value) => `${number(value)} %`, change: (loss) => changeLink({ loss: loss / 100 }) },
    { label: "Jitter of clocks", value: state.jitterMs, low: 0, high: 50, logarithmic: true, disabled: !isRemy, show: (value) => (isRemy ? `${number(value)} ms` : "RemyCCs only"), change: (jitterMs) => begin({ ...state, jitterMs }) },
    { label: "Speed", value: state.speed, low: 0, high: 50, logarithmic: true, show: (value) => (atMost ? `${number(value)}×, here ${number(achieved)}×` : `${number(value)}×`), change: (speed) => setState({ ...state, speed }) },
  ];
  const remys = remySenders(state);
  const bdp = (rateNow * 1000 * state.rttMs) / PACKET_BITS;
  // Of each of those that are on, in words.
  const share = (network: number, besides: number): string => {
    const on = samples.current[network]?.flows.filter((flow) => flow.on).length ?? 0;
    return on > 0 ? `: ${number((bdp + besides) / on)}` : "";
  };
  const [picked] = pickedFirst(state, mapped);
  const lookup = lookupOf(picked?.runs ?? "");
  const title = (runs: string): string => known?.protocols.find((each) => each.name === runs)?.title ?? runs.replace("table:", "");
  const named = ["As chosen", `With ${title(state.beside)}`];
  const atMost = achieved < state.speed * 0.8 && running && state.speed > 0;
  void frame;
  // A fader is heard between two drawings, and does to the newest state what a slider does.
  const hands = useRef({ sliders: [] as Movable[], flip: (_: number): void => undefined });
  hands.current = {
    sliders: sliders.map(movable),
    flip: (sender) => sender < state.senders.length && switchSender(sender, flows[sender]?.on ? 0 : 1),
  };
  const faders = useRef<Faders>();
  faders.current?.follow();
  const listen = (): void => {
    faders.current ??= new Faders(() => hands.current.sliders, (sender) => hands.current.flip(sender), setNotice);
    void faders.current.open();
  };

  return (
    <div
      class="page"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        const file = event.dataTransfer?.files[0];
        if (file) void load(file);
      }}
    >
      <header>
        <h1>Live network</h1>
        <div class="bar">
          <button type="button" class="main" aria-pressed={!running} onClick={() => setRunning(!running)}>{running ? "Pause" : "Play"}</button>
          <button type="button" onClick={() => begin(state)}>Restart</button>
          <select aria-label="Preset" value="" onChange={(event) => {
            const preset = PRESETS.find((each) => each.name === event.currentTarget.value);
            event.currentTarget.value = "";
            if (!preset) return;
            begin({ ...ordinary, tables: state.tables, ...preset.change });
            setNotice(preset.about);
          }}>
            <option value="">Preset…</option>
            {Object.entries(GROUPS).map(([from, presets]) => (
              <optgroup key={from} label={from}>{presets.map((each) => <option key={each.name} value={each.name}>{each.name}</option>)}</optgroup>
            ))}
          </select>
          <label class="file">
            <input type="file" accept=".json,.dna,.trace,.txt,.up,.down,.pps" aria-label="RemyCC, recording or trace" onChange={(event) => {
              const file = event.currentTarget.files?.[0];
              if (file) void load(file);
              event.currentTarget.value = "";
            }} />
            <span>Open a table or trace…</span>
          </label>
          <button type="button" onClick={record}>Record</button>
          <button type="button" onClick={replay}>Replay</button>
          {"requestMIDIAccess" in navigator && <button type="button" onClick={listen}>MIDI faders</button>}
          {HAS_ADDRESS && (
            <button type="button" onClick={async () => {
              const url = `${location.href.split("#")[0]}#s=${await toFragment(state)}`;
              await navigator.clipboard?.writeText(url).catch(() => undefined);
              history.replaceState(null, "", url);
              setNotice("The page's address holds all of this; it is copied.");
            }}>Copy link</button>
          )}
        </div>
      </header>
      <p class="notice" role="status">{notice}</p>
      <main>
        <section class="controls" aria-label="Network and senders">
          <h2>Link</h2>
          {sliders.map((each) => <Slider key={each.label} {...each} />)}
          {state.trace && (
            <p class="trace">Trace: {state.trace.name} <button type="button" onClick={() => begin({ ...state, trace: undefined })}>Leave it</button></p>
          )}
          <label class="choice">
            <span>Queue</span>
            <select value={state.queue} onChange={(event) => changeLink({ queue: event.currentTarget.value })}>
              {known?.queues.map((each) => <option value={each.name}>{each.title}</option>)}
            </select>
          </label>
          <h2>Senders</h2>
          <ul class="senders">
            {state.senders.map((sender, i) => (
              <li key={i}>
                <button type="button" class="switch" role="switch" aria-checked={flows[i]?.on ?? false} aria-label={`Sender ${LETTERS[i]}`} style={`--flow:${look.flows[i]}`} onClick={() => switchSender(i, flows[i]?.on ? 0 : 1)}>{LETTERS[i]}</button>
                <select aria-label={`Sender ${LETTERS[i]} runs`} title={title(sender.runs)} value={sender.runs} onChange={(event) => begin({ ...state, senders: state.senders.map((each, j) => (i === j ? { ...each, runs: event.currentTarget.value } : each)) })}>{options}</select>
                <button type="button" class="small" aria-pressed={sender.how === 2} aria-label={`Sender ${LETTERS[i]} comes and goes by itself`} title="Comes and goes by itself" onClick={() => switchSender(i, sender.how === 2 ? 1 : 2)}>⟳</button>
                <button type="button" class="small" aria-label={`Remove sender ${LETTERS[i]}`} disabled={state.senders.length === 1} onClick={() => begin({ ...state, senders: state.senders.filter((_, j) => j !== i) })}>×</button>
              </li>
            ))}
          </ul>
          <button type="button" disabled={state.senders.length >= MAXIMUM_SENDERS} onClick={() => begin({ ...state, senders: [...state.senders, { runs: state.senders.at(-1)!.runs, how: 1 }] })}>Add a sender</button>
          <h2>Comparison</h2>
          <label class="stacked">
            <span>Beside it, RemyCCs run</span>
            <select value={state.beside} onChange={(event) => begin({ ...state, beside: event.currentTarget.value })}><option value="">nothing: one network</option>{options}</select>
          </label>
          <details>
            <summary>Coming and going, seed</summary>
            <Slider label="Mean time on" value={state.onMs / 1000} low={0.1} high={100} logarithmic show={(value) => `${number(value)} s`} change={(value) => begin({ ...state, onMs: value * 1000 })} />
            <Slider label="Mean time off" value={state.offMs / 1000} low={0.1} high={100} logarithmic show={(value) => `${number(value)} s`} change={(value) => begin({ ...state, offMs: value * 1000 })} />
            <label class="choice"><span>Seed</span><input type="number" min={0} max={4294967295} value={state.seed} onChange={(event) => begin({ ...state, seed: Math.max(0, Math.floor(Number(event.currentTarget.value)) || 0) })} /></label>
          </details>
        </section>
        <section class="strips" aria-label="Charts over time">
          {(compared ? [0, 1] : [0]).map((network) => (
            <div class="network" key={network}>
              {compared && <h2>{named[network]}</h2>}
              <h3>Packets in flight <small><span><i class="dashed" /> fair share of the BDP{share(network, 0)}</span>{state.buffer >= 0 && <span><i class="dotted" /> with the buffer{share(network, state.buffer)}</span>}</small></h3>
              <div class="strip flight" role="img" aria-label="Packets in flight of each sender over time" ref={place(`flight${network}`)} />
              <h3>Queue and drops <small><span><i class="drops" /> drops</span></small></h3>
              <div class="strip queue" role="img" aria-label="Packets that wait, and drops, over time" ref={place(`queue${network}`)} />
            </div>
          ))}
        </section>
        <section class="views" aria-label="Throughput, delay and rules">
          <h3>Throughput against delay {compared && <small><span><i class="full" /> {named[0]}</span><span><i class="hollow" /> {named[1]}</span></small>}</h3>
          <canvas class="trade" role="img" aria-label="Throughput against delay of each sender, with a trail" ref={place("trade")} />
          <div class="table-scroll" tabIndex={0} role="region" aria-label="Senders in numbers">
            {(compared ? [0, 1] : [0]).map((network) => (
              <table key={network}>
                {compared && <caption>{named[network]}</caption>}
                <thead><tr><th scope="col">Sender</th><th scope="col">Mbit/s</th><th scope="col">RTT, ms</th><th scope="col">Window</th><th scope="col">Lost</th><th scope="col">Rule</th></tr></thead>
                <tbody>
                  {state.senders.map((_, i) => {
                    const flow = samples.current[network]?.flows[i];
                    const head = samples.current[network]?.trails[i]?.at(-1);
                    return (
                      <tr key={i} class={flow?.on ? "" : "off"}>
                        <th scope="row"><i class="dot" style={`background:${look.flows[i]}`} />{LETTERS[i]}</th>
                        <td>{flow?.on && head ? number(head.mbps) : "–"}</td>
                        <td>{flow?.on && head ? number(head.delayMs) : "–"}</td>
                        <td>{flow?.on ? number(flow.window) : "–"}</td>
                        <td>{flow?.lost ?? 0}</td>
                        <td>{flow?.on && flow.rule >= 0 ? flow.rule : "–"}</td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            ))}
          </div>
          {lookup && (
            <>
              <h3>Rules</h3>
              <div class="axes">
                {[1, 0].map((axis) => (
                  <label><span>{axis === 0 ? "across" : "up"}</span>
                    <select value={axesOf(lookup, axes)[axis]} onChange={(event) => {
                      const next = axesOf(lookup, axes);
                      next[axis] = Number(event.currentTarget.value);
                      setAxes(next);
                    }}>{lookup.table.signals.filter((each) => each < 4).map((each) => <option value={each}>{signalName(lookup.table, each)}</option>)}</select>
                  </label>
                ))}
                <label><span>colour</span>
                  <select value={coloured} onChange={(event) => setColoured(event.currentTarget.value as Coloured)}>
                    <option value="increment">window increment</option>
                    <option value="multiple">window multiple</option>
                    <option value="intersend">intersend time</option>
                  </select>
                </label>
                {remys.length > 1 && (
                  <label><span>slice at</span>
                    <select value={picked && placeOf(picked)} onChange={(event) => setMapped(Number(event.currentTarget.value))}>
                      {remys.map((each) => <option key={placeOf(each)} value={placeOf(each)}>sender {LETTERS[each.sender]}{each.network === 1 && " beside"}</option>)}
                    </select>
                  </label>
                )}
              </div>
              <canvas class="map" role="img" aria-label="Map of the rules over two signals, with those in use" ref={place("map")} />
              {scale && <p class="scale"><span>{number(scale.low)}</span><i /><span>{number(scale.high)} {unitOf(lookup.table, coloured)}</span></p>}
              <ul class="rules">
                {remys.map((each) => {
                  const flow = samples.current[each.network]?.flows[each.sender];
                  const table = lookupOf(each.runs);
                  const action = flow?.on ? table?.actions[flow.rule] : undefined;
                  if (!flow || !table || !action) return null;
                  const unit = (part: keyof typeof action): string => unitOf(table.table, part);
                  return (
                    <li key={placeOf(each)}>
                      <i class="dot" style={`background:${look.flows[each.sender]}`} />
                      <b>{LETTERS[each.sender]}</b>{each.network === 1 && " beside"} rule {flow.rule}: {number(action.multiple)} {unit("multiple")} {action.increment < 0 ? "−" : "+"} {number(Math.abs(action.increment))} {unit("increment")}, a packet every {number(action.intersend)} {unit("intersend")}
                    </li>
                  );
                })}
              </ul>
            </>
          )}
        </section>
      </main>
    </div>
  );
}

render(<Page />, document.getElementById("page")!);
