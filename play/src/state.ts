// The page's state, and the actions that change it.

import { type Catalogue, type Controller, type Link, MAXIMUM_SENDERS, type Network, type Sender, type Switch, withSwitch, switchOf } from "./network";
import { type Preset, presetSetup } from "./presets";
import type { Recording } from "./recording";
import type { ActionPart } from "./rule-map";
import type { Setup } from "./setup";

// The map of rules: its two signals (across and up), the part of actions that determines colours,
// and the index of the sender whose memory determines the slice.
export interface MapView {
  axes: [number, number];
  coloured: ActionPart;
  place: number;
}

export interface State {
  setup: Setup;
  // Undefined until the simulator is loaded.
  catalogue?: Catalogue;
  // Number of the run. Changing it starts a new run.
  run: number;
  // The recording that is replayed, if any.
  replayed?: Recording;
  running: boolean;
  notice: string;
  map: MapView;
}

export type Action =
  | { type: "load"; catalogue: Catalogue; setup?: Setup; notice?: string }
  | { type: "pause"; running: boolean }
  | { type: "speed"; speed: number }
  | { type: "notify"; notice: string }
  | { type: "map"; change: Partial<MapView> }
  // These two change the running network.
  | { type: "change link"; change: Partial<Link> }
  | { type: "switch sender"; sender: number; to: Switch }
  // All others start a new run.
  | { type: "begin"; change?: Partial<Omit<Setup, "network">>; notice?: string }
  | { type: "preset"; preset: Preset }
  | { type: "replay"; setup: Setup; recording: Recording; notice?: string }
  | { type: "change network"; change: Partial<Network> }
  | { type: "open table"; name: string; numbers: number[] }
  | { type: "add sender" }
  | { type: "remove sender"; sender: number }
  | { type: "change sender"; sender: number; controller: Controller };

export function notify(notice: string): Action {
  return { type: "notify", notice };
}

export function initialState(setup: Setup): State {
  return { setup, run: 0, running: true, notice: "", map: { axes: [3, 2], coloured: "increment", place: 0 } };
}

function startRun(state: State, change: Partial<Setup> = {}, notice = "", replayed?: Recording): State {
  return { ...state, setup: { ...state.setup, ...change }, run: state.run + 1, notice, replayed };
}

// An opened table replaces the RemyCCs; without any, a sender is added.
function withTable(senders: Sender[], table: string): Sender[] {
  if (senders.some((each) => "table" in each)) {
    return senders.map((each) => ("table" in each ? withSwitch({ table }, switchOf(each)) : each));
  }
  return [...senders.slice(0, MAXIMUM_SENDERS - 1), withSwitch({ table }, 1)];
}

export function reduce(state: State, action: Action): State {
  const { setup } = state;
  const { network } = setup;
  const { senders } = network;
  const withSenders = (to: Sender[]): Partial<Setup> => ({ network: { ...network, senders: to } });
  const withSender = (number: number, to: Sender): Partial<Setup> => withSenders(senders.map((each, i) => (i === number ? to : each)));
  switch (action.type) {
    case "load":
      return startRun({ ...state, catalogue: action.catalogue, setup: action.setup ?? setup }, {}, action.notice);
    case "pause":
      return { ...state, running: action.running };
    case "speed":
      return { ...state, setup: { ...setup, speed: action.speed } };
    case "notify":
      return { ...state, notice: action.notice };
    case "map":
      return { ...state, map: { ...state.map, ...action.change } };
    case "change link":
      return { ...state, setup: { ...setup, network: { ...network, ...action.change } } };
    case "switch sender":
      return { ...state, setup: { ...setup, ...withSender(action.sender, withSwitch(senders[action.sender], action.to)) } };
    case "begin":
      return startRun(state, action.change, action.notice);
    case "preset":
      return startRun({ ...state, setup: presetSetup(action.preset, setup.tables) }, {}, action.preset.about);
    case "replay":
      return startRun({ ...state, setup: action.setup }, {}, action.notice, action.recording);
    case "change network":
      return startRun(state, { network: { ...network, ...action.change } });
    case "open table":
      return startRun(state, { tables: { ...setup.tables, [action.name]: action.numbers }, ...withSenders(withTable(senders, action.name)) });
    case "add sender":
      return startRun(state, withSenders([...senders, withSwitch(senders.at(-1)!, 1)]));
    case "remove sender":
      return startRun(state, withSenders(senders.filter((_, i) => i !== action.sender)));
    case "change sender":
      return startRun(state, withSender(action.sender, withSwitch(action.controller, switchOf(senders[action.sender]))));
  }
}

type Follower = (state: State, before: State) => void;

export type Dispatch = (action: Action) => void;

// Holds the state and notifies its followers of changes.
export class Store {
  private readonly followers: Follower[] = [];

  constructor(public state: State) {}

  readonly dispatch: Dispatch = (action) => {
    const before = this.state;
    this.state = reduce(before, action);
    for (const follow of this.followers) follow(this.state, before);
  };

  follow(follower: Follower): void {
    this.followers.push(follower);
  }
}
