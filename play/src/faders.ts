// Web MIDI: faders that move sliders and are moved by them, and keys that switch senders.

// What a fader can move.
export interface Movable {
  label: string;
  // From 0 to 1.
  place: number;
  move: (place: number) => void;
}

const CONTROL = 0xb0;
const PITCH = 0xe0;
const NOTE_ON = 0x90;

// A fader takes the next slider that has none when it is first moved, and a key the next sender:
// devices number theirs in many ways.
export class Faders {
  private readonly sliderOf = new Map<string, number>();
  private readonly senderOf = new Map<number, number>();
  // Where motors are, and since when hands were off.
  private readonly placeOf = new Map<string, { place: number; heardAt: number }>();
  private outputs: MIDIOutput[] = [];

  constructor(
    private readonly sliders: () => Movable[],
    private readonly flip: (sender: number) => void,
    private readonly say: (sentence: string) => void,
  ) {}

  async open(): Promise<void> {
    let access: MIDIAccess;
    try {
      access = await navigator.requestMIDIAccess();
    } catch {
      this.say("This browser lets the page have no MIDI device.");
      return;
    }
    const look = (): void => {
      const inputs = [...access.inputs.values()];
      for (const input of inputs) input.onmidimessage = ({ data }) => data && this.hear(data);
      this.outputs = [...access.outputs.values()];
      const names = inputs.map((each) => each.name ?? "a device").join(", ");
      this.say(names ? `Move a fader of ${names}: it takes the next slider, a key the next sender.` : "No MIDI device is there; it is heard once it is.");
    };
    access.onstatechange = look;
    look();
  }

  private hear(data: Uint8Array): void {
    const [status, first, second] = data;
    const kind = status & 0xf0;
    if (kind === CONTROL) this.move(`${status}:${first}`, second / 127);
    else if (kind === PITCH) this.move(`${status}`, (first + 128 * second) / 16383);
    else if (kind === NOTE_ON && second > 0) {
      if (!this.senderOf.has(first)) this.senderOf.set(first, this.senderOf.size);
      this.flip(this.senderOf.get(first)!);
    }
  }

  private move(fader: string, place: number): void {
    const sliders = this.sliders();
    let number = this.sliderOf.get(fader);
    if (number === undefined) {
      if (this.sliderOf.size >= sliders.length) return;
      this.sliderOf.set(fader, (number = this.sliderOf.size));
      this.say(`This fader moves ${sliders[number].label}.`);
    }
    this.placeOf.set(fader, { place, heardAt: performance.now() });
    sliders[number].move(place);
  }

  // Motors follow what was moved by other means; not while a hand is on them.
  follow(): void {
    const sliders = this.sliders();
    for (const [fader, number] of this.sliderOf) {
      const known = this.placeOf.get(fader);
      const { place } = sliders[number];
      if (!known || Math.abs(known.place - place) < 1 / 127 || performance.now() - known.heardAt < 500) continue;
      known.place = place;
      const [status, controller] = fader.split(":").map(Number);
      const fine = Math.round(place * 16383);
      const message = controller === undefined ? [status, fine & 127, fine >> 7] : [status, controller, Math.round(place * 127)];
      for (const output of this.outputs) output.send(message);
    }
  }
}
