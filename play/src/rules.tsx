// The rules in use: a map of them, and the actions of those that were used last.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { figure } from "./figures";
import { LETTERS } from "./look";
import { MAXIMUM_SENDERS, replaced, tableOf } from "./network";
import { type PartProps, READING_FRAMES, useFrames } from "./part";
import { type Coloured, drawMap, type MapFlow, type Range } from "./rule-map";
import { knownTables, type Setup } from "./setup";
import type { MapView } from "./state";
import { fromNumbers, Lookup, signalName, unitOf } from "./table";

interface RemySender {
  // 0 in the network as chosen, 1 in the one beside.
  number: number;
  sender: number;
  table: string;
  // Its number among the senders of both networks.
  place: number;
}

function remySenders({ network, beside }: Setup): RemySender[] {
  return (beside ? [0, 1] : [0]).flatMap((number) =>
    network.senders.flatMap((each, sender) => {
      const table = tableOf(number && beside ? replaced(each, beside) : each);
      return table === undefined ? [] : [{ number, sender, table, place: number * MAXIMUM_SENDERS + sender }];
    }),
  );
}

// The sender by whose memory the map is cut.
function picked(remys: RemySender[], { place }: MapView): RemySender | undefined {
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

// Signals of the usual four that the table looks at.
function usualSignals({ table }: Lookup): number[] {
  return table.signals.filter((each) => each < 4);
}

// The signals that are wanted, or others where the table does not look at them.
function axesOf(lookup: Lookup, { axes }: MapView): [number, number] {
  const usual = usualSignals(lookup);
  return axes.map((each, axis) => (usual.includes(each) ? each : usual[Math.min(axis, usual.length - 1)])) as [number, number];
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

function MapChoices({ state, dispatch, lookup }: PartProps & { lookup: Lookup }) {
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
          {usualSignals(lookup).map((each) => <option value={each}>{signalName(lookup.table, each)}</option>)}
        </Choice>
      ))}
      <Choice label="colour" value={map.coloured} change={(part) => change({ coloured: part as Coloured })}>
        <option value="increment">window increment</option>
        <option value="multiple">window multiple</option>
        <option value="intersend">intersend time</option>
      </Choice>
      {remys.length > 1 && (
        <Choice label="slice at" value={picked(remys, map)?.place} change={(place) => change({ place: Number(place) })}>
          {remys.map((each) => <option key={each.place} value={each.place}>sender {LETTERS[each.sender]}{each.number === 1 && " beside"}</option>)}
        </Choice>
      )}
    </div>
  );
}

function RulesInUse({ state, simulation, look }: PartProps) {
  const { setup } = state;
  return (
    <ul class="rules">
      {remySenders(setup).map(({ number, sender, table, place }) => {
        const flow = simulation.samples[number]?.flows[sender];
        const lookup = lookupOf(table, setup);
        const action = flow?.on ? lookup?.actions[flow.rule] : undefined;
        if (!flow || !lookup || !action) return null;
        const unit = (part: Coloured): string => unitOf(lookup.table, part);
        return (
          <li key={place}>
            <i class="dot" style={`background:${look.flows[sender]}`} />
            <b>{LETTERS[sender]}</b>{number === 1 && " beside"} rule {flow.rule}: {figure(action.multiple)} {unit("multiple")} {action.increment < 0 ? "−" : "+"} {figure(Math.abs(action.increment))} {unit("increment")}, a packet every {figure(action.intersend)} {unit("intersend")}
          </li>
        );
      })}
    </ul>
  );
}

// Nothing where no sender runs a RemyCC.
export function Rules(props: PartProps) {
  const { state, simulation, look } = props;
  const { setup, map } = state;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [scale, setScale] = useState<Range>();
  const remys = remySenders(setup);
  const shown = picked(remys, map);
  const lookup = lookupOf(shown?.table, setup);
  useFrames(READING_FRAMES, () => {
    const flows = shown && simulation.samples[shown.number]?.flows;
    if (!canvas.current || !lookup || !flows) return;
    // Senders of its table in its network; the map is cut by the first one's memory.
    const seen: MapFlow[] = [shown, ...remys.filter((each) => each !== shown)].flatMap(({ number, sender, table }) => {
      const flow = flows[sender];
      if (number !== shown.number || table !== shown.table || !flow?.on || flow.rule < 0) return [];
      return [{ colour: look.flows[sender], rule: flow.rule, memory: flow.memory }];
    });
    setScale(drawMap(canvas.current, look, lookup, axesOf(lookup, map), map.coloured, seen));
  });
  if (!lookup) return null;
  return (
    <>
      <h3>Rules</h3>
      <MapChoices {...props} lookup={lookup} />
      <canvas class="map" role="img" aria-label="Map of the rules over two signals, with those in use" ref={canvas} />
      {scale && <p class="scale"><span>{figure(scale.low)}</span><i /><span>{figure(scale.high)} {unitOf(lookup.table, map.coloured)}</span></p>}
      <RulesInUse {...props} />
    </>
  );
}
