// Canvas drawing, and numbers for axes.

export const FONT = "12px system-ui, sans-serif";

// Prepares a canvas at the screen's resolution; undefined while it has no size.
export function prepareCanvas(canvas: HTMLCanvasElement): { pen: CanvasRenderingContext2D; width: number; height: number } | undefined {
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

// About four round numbers in a range.
export function roundNumbers(low: number, high: number): string[] {
  const raw = (high - low) / 4;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((each) => each * unit >= raw * 0.999)!;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => ((first + i) * step).toFixed(digits));
}

// Round numbers in a range for a logarithmic axis.
export function roundNumbersOnLogScale(low: number, high: number): string[] {
  if (high / low < 2.5) return roundNumbers(low, high);
  const result: string[] = [];
  for (let unit = 10 ** Math.floor(Math.log10(low)); unit <= high; unit *= 10) {
    for (const each of [1, 1.5, 2, 3, 4, 6, 8]) if (each * unit >= low && each * unit <= high) result.push(String(Number((each * unit).toPrecision(2))));
  }
  return result;
}

export const formatShort = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1).replace(/\.0$/, "") : value.toPrecision(2).replace(/\.0$/, "");
