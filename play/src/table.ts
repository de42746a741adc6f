// Reads RemyCCs from .json and .dna, converts them to the simulator's numbers, and looks up rules
// for the map. The simulator validates tables.

export interface Action {
  multiple: number;
  increment: number;
  intersend: number;
}

export interface TableNode {
  thresholds: { signal: number; value: number }[];
  action: Action;
}

export interface Table {
  scaleFree: boolean;
  remembers: boolean;
  domainUpper: number;
  // Constants in the order of PATH_FIELDS; null: the senders have no path model.
  pathModel: number[] | null;
  signals: number[];
  nodes: TableNode[];
}

// By axis, each signal's name in absolute and in scale-free rules. scripts/live_page.py inserts the
// simulator's declarations.
declare const SIGNAL_NAMES: [string, string][];
export const SIGNALS = SIGNAL_NAMES.length;
// The constants of a path model and their defaults, inserted likewise.
declare const PATH_FIELDS: [string, number][];

export function signalName(table: Table, signal: number): string {
  return SIGNAL_NAMES[signal][Number(table.scaleFree)];
}

// The unit of an action's part, for display.
export function unitOf(table: Table, part: keyof Action): string {
  if (part === "multiple") return "× the window";
  if (part === "increment") return table.scaleFree ? "% of the BDP" : "packets";
  return table.scaleFree ? "× the measured interval" : "ms";
}

function signalNumber(name: string): number {
  const short = name.replace(/^SIGNAL_/, "").toLowerCase();
  const number = SIGNAL_NAMES.findIndex((names) => names.includes(short));
  if (number < 0) throw new Error(`looks at ${name}, which is not a signal`);
  return number;
}

// Parses the JSON form of a RuleTable message.
export function fromJson(text: string): Table {
  const tree = JSON.parse(text);
  if (!Array.isArray(tree.nodes) || !Array.isArray(tree.signals)) {
    throw new Error('is not a rule table, which is an object with "signals" and "nodes"');
  }
  return {
    scaleFree: ["RULES_SCALE_FREE", "RULES_SCALE_FREE_REMEMBERING"].includes(tree.rules),
    remembers: tree.rules === "RULES_SCALE_FREE_REMEMBERING",
    domainUpper: tree.domain_upper || 163840,
    pathModel: tree.path_model
      ? PATH_FIELDS.map(([name, absent]) => tree.path_model[name] ?? absent)
      : null,
    signals: tree.signals.map(signalNumber),
    nodes: tree.nodes.map((node: any) => ({
      thresholds: (node.split?.thresholds ?? []).map((each: any) => ({
        signal: signalNumber(each.signal),
        value: each.value ?? 0,
      })),
      action: {
        multiple: node.action?.window_multiple ?? 0,
        increment: node.action?.window_increment ?? 0,
        intersend: node.action?.intersend_ms ?? 0,
      },
    })),
  };
}

type Fields = Map<number, (number | Uint8Array)[]>;

// Decodes the Protocol Buffers wire format, as far as .dna files use it.
function fields(bytes: Uint8Array): Fields {
  const found: Fields = new Map();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let place = 0;
  const varint = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = view.getUint8(place++);
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (place < bytes.length) {
    const tag = varint();
    const values = found.get(tag >>> 3) ?? [];
    found.set(tag >>> 3, values);
    switch (tag & 7) {
      case 0:
        values.push(varint());
        break;
      case 1:
        values.push(view.getFloat64(place, true));
        place += 8;
        break;
      case 2: {
        const length = varint();
        if (place + length > bytes.length) throw new Error("ends in the middle of a field");
        values.push(bytes.subarray(place, place + length));
        place += length;
        break;
      }
      default:
        throw new Error("is not a .dna file");
    }
  }
  return found;
}

const message = (of: Fields, field: number): Fields =>
  fields((of.get(field)?.[0] as Uint8Array | undefined) ?? new Uint8Array());

const DNA_AXES = 6;
// Default upper bound in .dna files.
const DNA_UPPER = 163840;

function corner(range: Fields, field: number, absent: number): number[] {
  const point = message(range, field);
  const present = range.has(field);
  return Array.from({ length: DNA_AXES }, (_, axis) =>
    Number(point.get(21 + axis)?.[0] ?? (present ? 0 : absent)),
  );
}

// Parses a .dna file (proto/remy_farm/dna/v1/dna.proto).
export function fromDna(bytes: Uint8Array): Table {
  const nodes: TableNode[] = [];
  const used = new Set<number>();
  const visit = (tree: Fields): void => {
    const children = (tree.get(2) ?? []).map((each) => fields(each as Uint8Array));
    if (children.length === 0) {
      const leaf = message(tree, 3);
      const zigzag = Number(leaf.get(31)?.[0] ?? 0);
      nodes.push({
        thresholds: [],
        action: {
          increment: zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2,
          multiple: Number(leaf.get(32)?.[0] ?? 0),
          intersend: Number(leaf.get(33)?.[0] ?? 0),
        },
      });
      return;
    }
    const lower = corner(message(tree, 1), 11, 0);
    const corners = children.map((child) => corner(message(child, 1), 11, 0));
    const thresholds: TableNode["thresholds"] = [];
    for (let signal = 0; signal < DNA_AXES; ++signal) {
      const above = corners.map((each) => each[signal]).filter((value) => value > lower[signal]);
      if (above.length > 0) {
        thresholds.push({ signal, value: above[0] });
        used.add(signal);
      }
    }
    if (children.length !== 2 ** thresholds.length) {
      throw new Error("has a node whose children do not fill it; convert it with remy-farm convert");
    }
    nodes.push({ thresholds, action: { multiple: 0, increment: 0, intersend: 0 } });
    const ordered: Fields[] = [];
    children.forEach((child, i) => {
      let place = 0;
      thresholds.forEach(({ signal, value }, j) => {
        if (corners[i][signal] >= value) place |= 1 << j;
      });
      ordered[place] = child;
    });
    for (let place = 0; place < children.length; ++place) {
      if (!ordered[place]) throw new Error("has a node whose children overlap");
      visit(ordered[place]);
    }
  };
  const root = fields(bytes);
  visit(root);
  const upper = corner(message(root, 1), 12, DNA_UPPER);
  const signals = [0, 1, 2, 3].concat([...used].filter((each) => each > 3).sort());
  return {
    scaleFree: false,
    remembers: false,
    domainUpper: Math.max(...upper.slice(0, 4)) || DNA_UPPER,
    pathModel: null,
    signals,
    nodes,
  };
}

// Converts a table to the input of remy_live_add_table() (simulator/src/live/live.h).
export function toNumbers(table: Table): number[] {
  const numbers = [Number(table.scaleFree) + Number(table.remembers), table.domainUpper];
  numbers.push(...(table.pathModel ? [1, ...table.pathModel] : [0]));
  numbers.push(table.signals.length, ...table.signals);
  for (const { thresholds, action } of table.nodes) {
    numbers.push(thresholds.length);
    for (const { signal, value } of thresholds) numbers.push(signal, value);
    if (thresholds.length === 0) numbers.push(action.multiple, action.increment, action.intersend);
  }
  return numbers;
}

export function fromNumbers(numbers: number[]): Table {
  let place = 0;
  const next = (): number => numbers[place++];
  const kind = next();
  const domainUpper = next();
  const pathModel = next() > 0 ? PATH_FIELDS.map(next) : null;
  const signals = Array.from({ length: next() }, next);
  const nodes: TableNode[] = [];
  while (place < numbers.length) {
    const thresholds = Array.from({ length: next() }, () => ({ signal: next(), value: next() }));
    const action = { multiple: 0, increment: 0, intersend: 0 };
    if (thresholds.length === 0) {
      action.multiple = next();
      action.increment = next();
      action.intersend = next();
    }
    nodes.push({ thresholds, action });
  }
  return { scaleFree: kind > 0, remembers: kind === 2, domainUpper, pathModel, signals, nodes };
}

// A table prepared for look-ups.
export class Lookup {
  readonly actions: Action[] = [];
  private readonly children: number[][] = [];
  private readonly ruleOf: number[] = [];

  constructor(readonly table: Table) {
    let next = 0;
    const visit = (): number => {
      const node = next++;
      const { thresholds, action } = table.nodes[node];
      this.children[node] = [];
      if (thresholds.length === 0) {
        this.ruleOf[node] = this.actions.push(action) - 1;
      } else {
        for (let i = 0; i < 2 ** thresholds.length; ++i) this.children[node].push(visit());
      }
      return node;
    };
    visit();
  }

  rule(memory: ArrayLike<number>): number {
    let node = 0;
    while (this.children[node].length > 0) {
      let child = 0;
      this.table.nodes[node].thresholds.forEach(({ signal, value }, j) => {
        if (memory[signal] >= value) child |= 1 << j;
      });
      node = this.children[node][child];
    }
    return this.ruleOf[node];
  }
}
