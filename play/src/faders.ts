// Web MIDI: motor faders for sliders, and keys that switch senders.

// A slider that a fader can control.
export interface FaderTarget {
  label: string;
  // Position from 0 to 1.
  position: number;
  move: (position: number) => void;
}

const CONTROL = 0xb0;
const PITCH = 0xe0;
const NOTE_ON = 0x90;

// Assigns faders and keys in order of first use, because devices number their controls in different
// ways: the first move of a fader assigns it to the next slider without a fader, and the first press
// of a key assigns it to the next sender without a key.
export class Faders {
  private readonly sliderOfFader = new Map<string, number>();
  private readonly senderOfKey = new Map<number, number>();
  // Last known position of each fader, and when it was last moved by hand.
  private readonly positionOfFader = new Map<string, { position: number; movedAt: number }>();
  private outputs: MIDIOutput[] = [];

  constructor(
    private readonly sliders: () => FaderTarget[],
    private readonly toggleSender: (sender: number) => void,
    private readonly notify: (sentence: string) => void,
  ) {}

  async open(): Promise<void> {
    let access: MIDIAccess;
    try {
      access = await navigator.requestMIDIAccess();
    } catch {
      this.notify("This browser does not give the page access to MIDI devices.");
      return;
    }
    const listDevices = (): void => {
      const inputs = [...access.inputs.values()];
      for (const input of inputs) input.onmidimessage = ({ data }) => data && this.onMessage(data);
      this.outputs = [...access.outputs.values()];
      const names = inputs.map((each) => each.name ?? "a device").join(", ");
      this.notify(names ? `Move a fader of ${names} to let it control the next slider, or press a key to let it switch the next sender.` : "No MIDI device is connected. Connect one to use it.");
    };
    access.onstatechange = listDevices;
    listDevices();
  }

  private onMessage(data: Uint8Array): void {
    const [status, first, second] = data;
    const kind = status & 0xf0;
    if (kind === CONTROL) this.move(`${status}:${first}`, second / 127);
    else if (kind === PITCH) this.move(`${status}`, (first + 128 * second) / 16383);
    else if (kind === NOTE_ON && second > 0) {
      if (!this.senderOfKey.has(first)) this.senderOfKey.set(first, this.senderOfKey.size);
      this.toggleSender(this.senderOfKey.get(first)!);
    }
  }

  private move(fader: string, position: number): void {
    const sliders = this.sliders();
    let number = this.sliderOfFader.get(fader);
    if (number === undefined) {
      if (this.sliderOfFader.size >= sliders.length) return;
      this.sliderOfFader.set(fader, (number = this.sliderOfFader.size));
      this.notify(`This fader moves ${sliders[number].label}.`);
    }
    this.positionOfFader.set(fader, { position, movedAt: performance.now() });
    sliders[number].move(position);
  }

  // Moves the motors to the sliders' positions, except faders that were just moved by hand.
  follow(): void {
    const sliders = this.sliders();
    for (const [fader, number] of this.sliderOfFader) {
      const known = this.positionOfFader.get(fader);
      const { position } = sliders[number];
      if (!known || Math.abs(known.position - position) < 1 / 127 || performance.now() - known.movedAt < 500) continue;
      known.position = position;
      const [status, controller] = fader.split(":").map(Number);
      const fine = Math.round(position * 16383);
      const message = controller === undefined ? [status, fine & 127, fine >> 7] : [status, controller, Math.round(position * 127)];
      for (const output of this.outputs) output.send(message);
    }
  }
}
