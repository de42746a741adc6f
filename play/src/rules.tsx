// The rules in use: a map, and the actions of the rules that were used last.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { formatNumber } from "./format";
import { LETTERS } from "./palette";
import { MAXIMUM_SENDERS, comparisonController, tableOf } from "./network";
import { type PageProps, READING_FRAMES, useFrames } from "./page-props";
import { type ActionPart, drawMap, type MapFlow, type Range } from "./rule-map";
import { knownTables, type Setup } from "./setup";
import type { MapView } from "./state";
import { fromNumbers, Lookup, signalName, unitOf } from "./table";

interface RemySender {
  // 0: the chosen network, 1: the comparison network.
  number: number;
  sender: number;
  table: string;
  // Index among the senders of both networks.
  place: number;
}

function remySenders({ network, beside }: Setup): RemySender[] {
  return (beside ? [0, 1] : [0]).flatMap((number) =>
    network.senders.flatMap((each, sender) => {
      const table = tableOf(number && beside ? comparisonController(each, beside) : each);
      return table === undefined ? [] : [{ number, sender, table, place: number * MAXIMUM_SENDERS + sender }];
    }),
  );
}

// The sender whose memory determines the slice of the map.
function selectedSender(remys: RemySender[], { place }: MapView): RemySender | undefined {
  return remys.find((each) => each.place === place) ?? remys[0];
}

const lookups = new WeakMap<number[], Lookup>();

function lookupOf(table: string | undefined, setup: Setup): Lookup | undefined {
  const numbers = table === undefined ? undefined : knownTables(setup)[table];
  if (!numbers) return undefined;
  let lookup = lookups.get(numbers);
  if (!lookup) lookups.set(numbers, (lookup = new Lookup(fromNumbers(numbers))));
  return lookup;
}

// The basic signals that the table looks at.
function basicSignals({ table }: Lookup): number[] {
  return table.signals.filter((each) => each < 4);
}

// The selected signals, or others if the table does not look at them.
function axesOf(lookup: Lookup, { axes }: MapView): [number, number] {
  const basic = basicSignals(lookup);
  return axes.map((each, axis) => (basic.includes(each) ? each : basic[Math.min(axis, basic.length - 1)])) as [number, number];
}

interface ChoiceProps {
  label: string;
  value: string | number | undefined;
  change: (value: string) => void;
  children: ComponentChildren;
}

function Choice({ label, value, change, children }: ChoiceProps) {
  return (
    <label><span>{label}</span>
      <select value={value} onChange={(event) => change(event.currentTarget.value)}>{children}</select>
    </label>
  );
}

function MapChoices({ state, dispatch, lookup }: PageProps & { lookup: Lookup }) {
  const { map, setup } = state;
  const remys = remySenders(setup);
  const axes = axesOf(lookup, map);
  const change = (to: Partial<MapView>): void => dispatch({ type: "map", change: to });
  return (
    <div class="axes">
      {[1, 0].map((axis) => (
        <Choice
          key={axis}
          label={axis === 0 ? "across" : "up"}
          value={axes[axis]}
          change={(signal) => change({ axes: axes.map((each, i) => (i === axis ? Number(signal) : each)) as MapView["axes"] })}
        >
          {basicSignals(lookup).map((each) => <option value={each}>{signalName(lookup.table, each)}</option>)}
        </Choice>
      ))}
      <Choice label="colour" value={map.coloured} change={(part) => change({ coloured: part as ActionPart })}>
        <option value="increment">window increment</option>
        <option value="multiple">window multiple</option>
        <option value="intersend">intersend time</option>
      </Choice>
      {remys.length > 1 && (
        <Choice label="slice at" value={selectedSender(remys, map)?.place} change={(place) => change({ place: Number(place) })}>
          {remys.map((each) => <option key={each.place} value={each.place}>sender {LETTERS[each.sender]}{each.number === 1 && " beside"}</option>)}
        </Choice>
      )}
    </div>
  );
}

function RulesInUse({ state, simulation, palette }: PageProps) {
  const { setup } = state;
  return (
    <ul class="rules">
      {remySenders(setup).map(({ number, sender, table, place }) => {
        const flow = simulation.samples[number]?.flows[sender];
        const lookup = lookupOf(table, setup);
        const action = flow?.on ? lookup?.actions[flow.rule] : undefined;
        if (!flow || !lookup || !action) return null;
        const unit = (part: ActionPart): string => unitOf(lookup.table, part);
        return (
          <li key={place}>
            <i class="dot" style={`background:${palette.flows[sender]}`} />
            <b>{LETTERS[sender]}</b>{number === 1 && " beside"} rule {flow.rule}: {formatNumber(action.multiple)} {unit("multiple")} {action.increment < 0 ? "−" : "+"} {formatNumber(Math.abs(action.increment))} {unit("increment")}, a packet every {formatNumber(action.intersend)} {unit("intersend")}
          </li>
        );
      })}
    </ul>
  );
}

// Empty if no sender runs a RemyCC.
export function Rules(props: PageProps) {
  const { state, simulation, palette } = props;
  const { setup, map } = state;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [scale, setScale] = useState<Range>();
  const remys = remySenders(setup);
  const shown = selectedSender(remys, map);
  const lookup = lookupOf(shown?.table, setup);
  useFrames(READING_FRAMES, () => {
    const flows = shown && simulation.samples[shown.number]?.flows;
    if (!canvas.current || !lookup || !flows) return;
    // Senders with the same table and network. The first determines the slice of the map.
    const flowsShown: MapFlow[] = [shown, ...remys.filter((each) => each !== shown)].flatMap(({ number, sender, table }) => {
      const flow = flows[sender];
      if (number !== shown.number || table !== shown.table || !flow?.on || flow.rule < 0) return [];
      return [{ colour: palette.flows[sender], rule: flow.rule, memory: flow.memory }];
    });
    setScale(drawMap(canvas.current, palette, lookup, axesOf(lookup, map), map.coloured, flowsShown));
  });
  if (!lookup) return null;
  return (
    <>
      <h3>Rules</h3>
      <MapChoices {...props} lookup={lookup} />
      <canvas class="map" role="img" aria-label="Map of the rules over two signals, with those in use" ref={canvas} />
      {scale && <p class="scale"><span>{formatNumber(scale.low)}</span><i /><span>{formatNumber(scale.high)} {unitOf(lookup.table, map.coloured)}</span></p>}
      <RulesInUse {...props} />
    </>
  );
}
