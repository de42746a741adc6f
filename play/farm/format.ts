// Formats numbers and times.

export function duration(seconds: number | null): string {
  if (seconds === null || seconds === 0) return "–";
  if (seconds < 0.1) return "< 0.1 s";
  if (seconds < 100) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} d`;
}

export function count(value: number): string {
  if (value < 1000) return value.toFixed(0);
  const steps: [number, string][] = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [size, letter] = steps.find(([least]) => value >= least)!;
  return `${(value / size).toPrecision(3)} ${letter}`;
}

// With as many digits as its error justifies.
export function score(value: number | null, error?: number | null, signed = false): string {
  if (value === null) return "–";
  const digits = error ? Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(error)))) : 4;
  const sign = signed && value >= 0 ? "+" : value < 0 ? "−" : "";
  const words = `${sign}${Math.abs(value).toFixed(digits)}`;
  return error ? `${words} ± ${error.toFixed(digits)}` : words;
}

// Date, year and local time. Written without Intl, whose start takes longer than the rest of the
// first screen; the page is in English.
function parts(seconds: number): [string, string, string] {
  const at = new Date(seconds * 1000);
  const [, month, day, year] = at.toDateString().split(" ");
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map((each) => String(each).padStart(2, "0"));
  return [`${month} ${Number(day)}`, year, clock.join(":")];
}

export const moment = (seconds: number): string => (seconds > 0 ? parts(seconds).join(", ") : "–");
// To the minute, without the year.
export function shortMoment(seconds: number): string {
  if (seconds <= 0) return "–";
  const [day, , clock] = parts(seconds);
  return `${day}, ${clock.slice(0, 5)}`;
}

// An amount in the coordinator's currency.
export function money(value: number | null): string {
  if (value === null) return "–";
  return value === 0 || value >= 0.1 ? value.toFixed(2) : value < 0.001 ? "< 0.001" : value.toPrecision(2);
}

export const several = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`;
