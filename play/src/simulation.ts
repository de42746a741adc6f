// The simulation that the page shows: a worker that runs it and follows the page's state, and the
// samples that it sends.

import { simulatorBytes } from "./embedded";
import { linkNumbers, switchOf } from "./network";
import { type Recording, newRecording } from "./recording";
import { Samples } from "./samples";
import { rateMbpsAt, type Setup } from "./setup";
import { notify, type State, type Store } from "./state";
import type { Command, WorkerMessage } from "./worker";
import workerSource from "worker-source";

const WINDOW_MS = 10_000;

// The time span of the charts over time.
export function windowMs({ speed }: Setup): number {
  return WINDOW_MS * Math.max(1, speed);
}

export class Simulation {
  // Samples of the network, and of the comparison network if there is one.
  samples: Samples[] = [];
  // The speed that this machine achieves.
  achievedSpeed = 1;
  private sentSpeed?: number;
  private recorded?: (message: { recording: Recording; digests: string[] }) => void;
  private readonly worker = new Worker(URL.createObjectURL(new Blob([workerSource], { type: "text/javascript" })));

  // `readAddress` returns the set-up in the page's address.
  constructor(
    private readonly store: Store,
    private readonly readAddress: () => Promise<{ setup?: Setup; notice?: string }>,
  ) {
    this.worker.onmessage = ({ data }: MessageEvent<WorkerMessage>) => void this.onMessage(data);
    WebAssembly.compile(simulatorBytes()).then(
      (module) => this.send({ kind: "load", module }),
      (error) => store.dispatch(notify(String(error))),
    );
    store.follow((state, before) => this.follow(state, before));
  }

  // Time of the latest sample.
  get timeMs(): number {
    return this.samples[0]?.timesMs.at(-1) ?? 0;
  }

  // True if a sender is on in the latest sample of the chosen network.
  isOn(sender: number): boolean {
    return this.samples[0]?.flows[sender]?.on ?? false;
  }

  // Returns a recording of the run up to now.
  record(): Promise<{ recording: Recording; digests: string[] }> {
    return new Promise((resolve) => {
      this.recorded = resolve;
      this.send({ kind: "request recording" });
    });
  }

  private send(send: Command): void {
    this.worker.postMessage(send);
  }

  private follow(state: State, before: State): void {
    const { catalogue, setup } = state;
    if (!catalogue) return;
    const speed = state.running ? setup.speed : 0;
    if (speed !== this.sentSpeed) this.send({ kind: "speed", speed: (this.sentSpeed = speed) });
    if (state.run !== before.run) {
      const recording = state.replayed ?? newRecording(setup, catalogue);
      this.samples = recording.networks.map(() => new Samples(recording.senders));
      this.send({ kind: "start", recording, run: state.run });
      return;
    }
    // During a run only a sender's switch or the link can change.
    const { network } = setup;
    const previous = before.setup.network;
    if (network.senders !== previous.senders) {
      network.senders.forEach((each, sender) => {
        if (each !== previous.senders[sender]) this.send({ kind: "event", event: { kind: "switch", sender, how: switchOf(each) } });
      });
    } else if (network !== previous) {
      const numbers = linkNumbers(network, rateMbpsAt(setup, 0), catalogue);
      this.send({ kind: "event", event: { kind: "link", numbers } });
    }
  }

  private async onMessage(message: WorkerMessage): Promise<void> {
    const { store } = this;
    switch (message.kind) {
      case "loaded":
        store.dispatch({ type: "load", catalogue: message.catalogue, ...(await this.readAddress()) });
        break;
      case "samples":
        if (message.run !== store.state.run) break;
        message.samples.forEach((each, i) => this.samples[i]?.add(each, windowMs(store.state.setup)));
        this.achievedSpeed = message.achieved;
        break;
      case "recording":
        this.recorded?.(message);
        break;
      case "replayed":
        store.dispatch(notify(`Replayed to the same end: digest ${message.digests.join(", ")}.`));
        break;
      case "error":
        store.dispatch(notify(message.sentence));
    }
  }
}
