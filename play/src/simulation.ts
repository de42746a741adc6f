// The simulation that the page shows: the worker that runs it, which follows the page's state, and
// the samples that come from there.

import { simulatorBytes } from "./embedded";
import { linkNumbers, switchOf } from "./network";
import { type Recording, recordingOf } from "./recording";
import { Samples } from "./samples";
import { rateMbpsAt, type Setup } from "./setup";
import { notify, type State, type Store } from "./state";
import type { Order, Report } from "./worker";
import workerSource from "worker-source";

const WINDOW_MS = 10_000;

// The time that charts over time show.
export function windowMs({ speed }: Setup): number {
  return WINDOW_MS * Math.max(1, speed);
}

export class Simulation {
  // Samples of the network, and of the one beside it.
  samples: Samples[] = [];
  // The speed that this machine comes to.
  achievedSpeed = 1;
  private orderedSpeed?: number;
  private recorded?: (report: { recording: Recording; digests: string[] }) => void;
  private readonly worker = new Worker(URL.createObjectURL(new Blob([workerSource], { type: "text/javascript" })));

  // `linked` is what the page's address holds.
  constructor(
    private readonly store: Store,
    private readonly linked: () => Promise<{ setup?: Setup; notice?: string }>,
  ) {
    this.worker.onmessage = ({ data }: MessageEvent<Report>) => void this.hear(data);
    WebAssembly.compile(simulatorBytes()).then(
      (module) => this.order({ kind: "load", module }),
      (error) => store.dispatch(notify(String(error))),
    );
    store.follow((state, before) => this.follow(state, before));
  }

  // Time of the newest sample.
  get timeMs(): number {
    return this.samples[0]?.timesMs.at(-1) ?? 0;
  }

  // Whether a sender is on in the newest sample of the network as chosen.
  isOn(sender: number): boolean {
    return this.samples[0]?.flows[sender]?.on ?? false;
  }

  // The run up to now.
  record(): Promise<{ recording: Recording; digests: string[] }> {
    return new Promise((resolve) => {
      this.recorded = resolve;
      this.order({ kind: "record" });
    });
  }

  private order(order: Order): void {
    this.worker.postMessage(order);
  }

  private follow(state: State, before: State): void {
    const { catalogue, setup } = state;
    if (!catalogue) return;
    const speed = state.running ? setup.speed : 0;
    if (speed !== this.orderedSpeed) this.order({ kind: "speed", speed: (this.orderedSpeed = speed) });
    if (state.run !== before.run) {
      const recording = state.replayed ?? recordingOf(setup, catalogue);
      this.samples = recording.networks.map(() => new Samples(recording.senders));
      this.order({ kind: "start", recording, run: state.run });
      return;
    }
    // Within a run a change is of one sender's switch, or of the link.
    const { network } = setup;
    const was = before.setup.network;
    if (network.senders !== was.senders) {
      network.senders.forEach((each, sender) => {
        if (each !== was.senders[sender]) this.order({ kind: "event", event: { kind: "switch", sender, how: switchOf(each) } });
      });
    } else if (network !== was) {
      const numbers = linkNumbers(network, rateMbpsAt(setup, 0), catalogue);
      this.order({ kind: "event", event: { kind: "link", numbers } });
    }
  }

  private async hear(report: Report): Promise<void> {
    const { store } = this;
    switch (report.kind) {
      case "loaded":
        store.dispatch({ type: "load", catalogue: report.catalogue, ...(await this.linked()) });
        break;
      case "samples":
        if (report.run !== store.state.run) break;
        report.samples.forEach((each, i) => this.samples[i]?.add(each, windowMs(store.state.setup)));
        this.achievedSpeed = report.achieved;
        break;
      case "recording":
        this.recorded?.(report);
        break;
      case "replayed":
        store.dispatch(notify(`Replayed to the same end: digest ${report.digests.join(", ")}.`));
        break;
      case "refused":
        store.dispatch(notify(report.sentence));
    }
  }
}
