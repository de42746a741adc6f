// A canvas to draw on, and the figures at its axes.

export const FONT = "12px system-ui, sans-serif";

// A canvas with as many pixels as the screen has; none while it has no size.
export function surface(canvas: HTMLCanvasElement): { pen: CanvasRenderingContext2D; width: number; height: number } | undefined {
  const { clientWidth: width, clientHeight: height } = canvas;
  const pen = canvas.getContext("2d");
  if (!pen || width < 40 || height < 40) return undefined;
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = FONT;
  return { pen, width, height };
}

// Some four round numbers between two.
export function roundBetween(low: number, high: number): string[] {
  const raw = (high - low) / 4;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((each) => each * unit >= raw * 0.999)!;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => ((first + i) * step).toFixed(digits));
}

// Round numbers between two on a logarithmic axis.
export function roundOnLogarithm(low: number, high: number): string[] {
  if (high / low < 2.5) return roundBetween(low, high);
  const found: string[] = [];
  for (let unit = 10 ** Math.floor(Math.log10(low)); unit <= high; unit *= 10) {
    for (const each of [1, 1.5, 2, 3, 4, 6, 8]) if (each * unit >= low && each * unit <= high) found.push(String(Number((each * unit).toPrecision(2))));
  }
  return found;
}

export const short = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1).replace(/\.0$/, "") : value.toPrecision(2).replace(/\.0$/, "");
