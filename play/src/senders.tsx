// The senders: what each runs and whether it is on, and the comparison network.

import type { ComponentChildren } from "preact";
import { titleOf } from "./format";
import { LETTERS } from "./palette";
import { type Controller, MAXIMUM_SENDERS, switchOf } from "./network";
import type { PageProps } from "./page-props";
import { knownTables } from "./setup";
import type { State } from "./state";

const TABLE_MARK = "table:";

function optionOf(controller: Controller | undefined): string {
  if (!controller) return "";
  return "table" in controller ? TABLE_MARK + controller.table : controller.protocol;
}

function controllerOf(option: string): Controller | undefined {
  if (!option) return undefined;
  return option.startsWith(TABLE_MARK) ? { table: option.slice(TABLE_MARK.length) } : { protocol: option };
}

interface ControllerSelectProps {
  label?: string;
  title?: string;
  state: State;
  controller?: Controller;
  choose: (controller: Controller | undefined) => void;
  // Options before tables and protocols.
  children?: ComponentChildren;
}

function ControllerSelect({ label, title, state, controller, choose, children }: ControllerSelectProps) {
  const tables = Object.keys(knownTables(state.setup));
  return (
    <select aria-label={label} title={title} value={optionOf(controller)} onChange={(event) => choose(controllerOf(event.currentTarget.value))}>
      {children}
      {tables.length > 0 && (
        <optgroup label="RemyCCs">
          {tables.map((name) => <option value={TABLE_MARK + name}>{name}</option>)}
        </optgroup>
      )}
      <optgroup label="Protocols">
        {state.catalogue?.protocols.map((each) => <option value={each.name}>{each.title}</option>)}
      </optgroup>
    </select>
  );
}

export function SenderList({ state, dispatch, simulation, palette }: PageProps) {
  const { senders } = state.setup.network;
  return (
    <>
      <h2>Senders</h2>
      <ul class="senders">
        {senders.map((each, sender) => {
          const letter = LETTERS[sender];
          const isOn = simulation.isOn(sender);
          const isLeft = switchOf(each) === 2;
          return (
            <li key={sender}>
              <button
                type="button"
                class="switch"
                role="switch"
                aria-checked={isOn}
                aria-label={`Sender ${letter}`}
                style={`--flow:${palette.flows[sender]}`}
                onClick={() => dispatch({ type: "switch sender", sender, to: isOn ? 0 : 1 })}
              >{letter}</button>
              <ControllerSelect
                label={`Sender ${letter} runs`}
                title={titleOf(each, state.catalogue)}
                state={state}
                controller={each}
                choose={(controller) => controller && dispatch({ type: "change sender", sender, controller })}
              />
              <button
                type="button"
                class="small"
                aria-pressed={isLeft}
                aria-label={`Sender ${letter} comes and goes by itself`}
                title="Comes and goes by itself"
                onClick={() => dispatch({ type: "switch sender", sender, to: isLeft ? 1 : 2 })}
              >⟳</button>
              <button
                type="button"
                class="small"
                aria-label={`Remove sender ${letter}`}
                disabled={senders.length === 1}
                onClick={() => dispatch({ type: "remove sender", sender })}
              >×</button>
            </li>
          );
        })}
      </ul>
      <button type="button" disabled={senders.length >= MAXIMUM_SENDERS} onClick={() => dispatch({ type: "add sender" })}>Add a sender</button>
    </>
  );
}

export function Comparison({ state, dispatch }: PageProps) {
  return (
    <>
      <h2>Comparison</h2>
      <label class="stacked">
        <span>Beside it, RemyCCs run</span>
        <ControllerSelect state={state} controller={state.setup.beside} choose={(beside) => dispatch({ type: "begin", change: { beside } })}>
          <option value="">nothing: one network</option>
        </ControllerSelect>
      </label>
    </>
  );
}
