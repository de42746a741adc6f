// The toolbar: play and pause, presets, files, recordings, faders, and the link to the page.

import { useRef } from "preact/hooks";
import { HAS_ADDRESS, writeAddress } from "./address";
import { Faders } from "./faders";
import { readFile, FILE_EXTENSIONS, save } from "./files";
import { networkSliders } from "./network-form";
import type { PageProps } from "./page-props";
import { PRESETS } from "./presets";
import { STEP_MS } from "./simulator";
import { faderTarget } from "./slider";
import { notify } from "./state";

function PresetSelect({ dispatch }: PageProps) {
  return (
    <select aria-label="Preset" value="" onChange={(event) => {
      const { value } = event.currentTarget;
      const preset = Object.values(PRESETS).flat().find((each) => each.name === value);
      event.currentTarget.value = "";
      if (preset) dispatch({ type: "preset", preset });
    }}>
      <option value="">Preset…</option>
      {Object.entries(PRESETS).map(([from, group]) => (
        <optgroup key={from} label={from}>{group.map((each) => <option key={each.name} value={each.name}>{each.name}</option>)}</optgroup>
      ))}
    </select>
  );
}

function OpenFile({ dispatch }: PageProps) {
  return (
    <label class="file">
      <input type="file" accept={FILE_EXTENSIONS} aria-label="RemyCC, recording or trace" onChange={async (event) => {
        const file = event.currentTarget.files?.[0];
        event.currentTarget.value = "";
        if (file) dispatch(await readFile(file));
      }} />
      <span>Open a table or trace…</span>
    </label>
  );
}

// Faders act between renderings, and must do what the latest rendering's sliders do.
function MidiFaders(props: PageProps) {
  const latest = useRef(props);
  latest.current = props;
  const faders = useRef<Faders>();
  faders.current?.follow();
  const open = (): void => {
    faders.current ??= new Faders(
      () => networkSliders(latest.current).map(faderTarget),
      (sender) => {
        const { state, dispatch, simulation } = latest.current;
        if (sender < state.setup.network.senders.length) dispatch({ type: "switch sender", sender, to: simulation.isOn(sender) ? 0 : 1 });
      },
      (notice) => props.dispatch(notify(notice)),
    );
    void faders.current.open();
  };
  return <button type="button" onClick={open}>MIDI faders</button>;
}

export function Toolbar(props: PageProps) {
  const { state, dispatch, simulation } = props;
  const { setup, running } = state;
  const record = async (): Promise<void> => {
    const { recording, digests } = await simulation.record();
    save({ kind: "remy-farm recording", state: setup, recording, digests });
    dispatch(notify(`Kept ${(recording.steps * STEP_MS) / 1000} s; digest ${digests.join(", ")}. Drop the file here to see it again.`));
  };
  const replay = async (): Promise<void> => {
    const { recording } = await simulation.record();
    dispatch({ type: "replay", setup, recording });
  };
  const copyLink = async (): Promise<void> => {
    const url = await writeAddress(setup);
    await navigator.clipboard?.writeText(url).catch(() => undefined);
    dispatch(notify("The page's address contains the set-up and is copied."));
  };
  return (
    <header>
      <h1>Live network</h1>
      <div class="bar">
        <button type="button" class="main" aria-pressed={!running} onClick={() => dispatch({ type: "pause", running: !running })}>{running ? "Pause" : "Play"}</button>
        <button type="button" onClick={() => dispatch({ type: "begin" })}>Restart</button>
        <PresetSelect {...props} />
        <OpenFile {...props} />
        <button type="button" onClick={record}>Record</button>
        <button type="button" onClick={replay}>Replay</button>
        {"requestMIDIAccess" in navigator && <MidiFaders {...props} />}
        {HAS_ADDRESS && <button type="button" onClick={copyLink}>Copy link</button>}
      </div>
    </header>
  );
}
