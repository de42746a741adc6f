// Maps of a job's tables, and the rules that changed between two epochs.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Palette } from "../src/palette";
import { type ActionPart, drawMap, type Range } from "../src/rule-map";
import { fromJson, Lookup, signalName, unitOf } from "../src/table";
import { type Epoch, type Failure, call } from "./api";
import { several } from "./format";

const tableCache = new Map<string, Promise<Lookup>>();

// The table of an epoch never changes, so it is cached.
function tableOf(job: string, epoch: number): Promise<Lookup> {
  const key = `${job}:${epoch}`;
  let promise = tableCache.get(key);
  if (!promise) {
    promise = call<unknown>(`/api/jobs/${job}/table?epoch=${epoch}`).then((tree) => new Lookup(fromJson(JSON.stringify(tree))));
    promise.catch(() => tableCache.delete(key));
    tableCache.set(key, promise);
  }
  return promise;
}

const ACTION_PARTS: [ActionPart, string][] = [
  ["multiple", "window multiple"],
  ["increment", "window increment"],
  ["intersend", "pacing"],
];

function action(lookup: Lookup, rule: number): string {
  const { multiple, increment, intersend } = lookup.actions[rule];
  const unit = (part: ActionPart): string => unitOf(lookup.table, part);
  return `${multiple.toPrecision(3)} ${unit("multiple")} ${increment < 0 ? "−" : "+"} ${Math.abs(increment).toPrecision(3)} ${unit("increment")}, a packet every ${intersend.toPrecision(3)} ${unit("intersend")}`;
}

// Lists the rules whose actions differ, by looking up both tables at the same memory values.
function changedRules(before: Lookup, after: Lookup): string[] {
  const values = [0, 1, 2, 3].map((signal) => {
    const cuts = [before, after]
      .flatMap((each) => each.table.nodes.flatMap((node) => node.thresholds))
      .filter((each) => each.signal === signal)
      .map((each) => each.value);
    const sorted = [...new Set(cuts)].sort((a, b) => a - b).slice(0, 14);
    return [0, ...sorted];
  });
  const changed = new Map<string, string>();
  const memory = new Float64Array(9);
  for (const a of values[0]) for (const b of values[1]) for (const c of values[2]) for (const d of values[3]) {
    memory.set([a, b, c, d]);
    const [from, to] = [before.rule(memory), after.rule(memory)];
    const words = `rule ${from} → ${to}: ${action(before, from)} → ${action(after, to)}`;
    if (action(before, from) !== action(after, to)) changed.set(`${from}>${to}`, words);
  }
  return [...changed.values()];
}

interface MapProps {
  lookup: Lookup;
  palette: Palette;
  axes: [number, number];
  by: ActionPart;
  label: string;
  // The range of colours, and a callback with this map's own range.
  range: Range | undefined;
  onRange: (shownRange: Range) => void;
}

function RuleMap({ lookup, palette, axes, by, label, range, onRange }: MapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const draw = (): void => {
      const shownRange = drawMap(canvas.current!, palette, lookup, axes, by, [], range);
      if (shownRange) onRange(shownRange);
    };
    draw();
    const observer = new ResizeObserver(draw);
    observer.observe(canvas.current!);
    return () => observer.disconnect();
  }, [lookup, palette, axes[0], axes[1], by, range?.low, range?.high]);
  return (
    <figure>
      <figcaption>{label}, {several(lookup.actions.length, "rule")}</figcaption>
      <canvas class="map" ref={canvas} role="img" aria-label={`Rules of ${label}`} />
    </figure>
  );
}

export function TableMaps({ job, epochs, palette }: { job: string; epochs: Epoch[]; palette: Palette }) {
  const last = epochs.at(-1)?.epoch;
  const [selectedEpochs, setSelectedEpochs] = useState<[number | undefined, number | undefined]>([undefined, undefined]);
  const [by, setBy] = useState<ActionPart>("multiple");
  const [axes, setAxes] = useState<[number, number]>([2, 0]);
  const [tables, setTables] = useState<{ before: Lookup; after: Lookup }>();
  const [trouble, setTrouble] = useState("");
  // The range of values that each map shows. Both maps use a common colour scale.
  const [ranges, setRanges] = useState<Record<string, Range>>({});
  const after = selectedEpochs[1] ?? last;
  const before = selectedEpochs[0] ?? epochs.filter((each) => each.epoch < (after ?? 0)).at(-1)?.epoch ?? after;
  useEffect(() => {
    if (before === undefined || after === undefined) return;
    let isMounted = true;
    Promise.all([tableOf(job, before), tableOf(job, after)]).then(
      ([first, second]) => {
        if (isMounted) setTables({ before: first, after: second });
        setTrouble("");
      },
      (error: Failure) => isMounted && setTrouble(error.message),
    );
    return () => {
      isMounted = false;
    };
  }, [job, before, after]);
  const different = useMemo(() => (tables ? changedRules(tables.before, tables.after) : []), [tables]);
  if (after === undefined || before === undefined) return <p class="faint">There is a table once the first epoch is over.</p>;
  if (!tables) return <p class="faint" role="status">{trouble || "Loading"}</p>;
  const signals = tables.after.table.signals.filter((each) => each < 4);
  const shown = axes.map((each, axis) => (signals.includes(each) ? each : signals[Math.min(axis, signals.length - 1)])) as [number, number];
  const choice = (label: string, side: 0 | 1, value: number): preact.JSX.Element => (
    <label>
      {label}
      <select
        aria-label={side === 0 ? "From epoch" : "To epoch"}
        value={value}
        onChange={(event) => {
          const next = [...selectedEpochs] as typeof selectedEpochs;
          next[side] = Number(event.currentTarget.value);
          setSelectedEpochs(next);
        }}
      >
        {epochs.map((each) => <option key={each.epoch} value={each.epoch}>epoch {each.epoch}</option>)}
      </select>
    </label>
  );
  const axis = (which: 0 | 1, label: string): preact.JSX.Element => (
    <label>
      {label}
      <select
        value={shown[which]}
        onChange={(event) => {
          const next = [...shown] as [number, number];
          next[which] = Number(event.currentTarget.value);
          setAxes(next);
        }}
      >
        {signals.map((each) => <option key={each} value={each}>{signalName(tables.after.table, each)}</option>)}
      </select>
    </label>
  );
  const shownTables: [number, Lookup][] = before === after ? [[after, tables.after]] : [[before, tables.before], [after, tables.after]];
  const keyOf = (epoch: number): string => [epoch, by, ...shown].join();
  const known = shownTables.map(([epoch]) => ranges[keyOf(epoch)]).filter((each) => each !== undefined);
  const range = known.length > 0 ? { low: Math.min(...known.map((each) => each.low)), high: Math.max(...known.map((each) => each.high)) } : undefined;
  return (
    <>
      <div class="axes">
        {choice("From", 0, before)}
        {choice("to", 1, after)}
        {axis(0, "across")}
        {axis(1, "up")}
        <label>
          colour
          <select value={by} onChange={(event) => setBy(event.currentTarget.value as ActionPart)}>
            {ACTION_PARTS.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
          </select>
        </label>
      </div>
      <div class="maps">
        {shownTables.map(([epoch, lookup]) => (
          <RuleMap
            key={epoch}
            lookup={lookup}
            palette={palette}
            axes={shown}
            by={by}
            label={`epoch ${epoch}`}
            range={range}
            onRange={(shownRange) => setRanges((now) => (now[keyOf(epoch)]?.low === shownRange.low && now[keyOf(epoch)].high === shownRange.high ? now : { ...now, [keyOf(epoch)]: shownRange }))}
          />
        ))}
      </div>
      {range && <div class="scale"><span>{range.low.toPrecision(3)}</span><i /><span>{range.high.toPrecision(3)} {unitOf(tables.after.table, by)}</span></div>}
      {signals.length > 2 && <p class="faint">Where the other signals are {tables.after.table.scaleFree ? "1" : "in the middle of the rules"}.</p>}
      {trouble && <p role="alert">{trouble}</p>}
      {before !== after && (
        <details>
          <summary>{different.length === 0 ? "Nothing was changed" : `${several(different.length, "rule")} changed`}</summary>
          <ul class="rules">{different.slice(0, 200).map((each) => <li key={each}>{each}</li>)}</ul>
        </details>
      )}
    </>
  );
}
