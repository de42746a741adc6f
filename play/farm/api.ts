// Requests to the page's server, and its updates.

export interface Row {
  id: string;
  name: string;
  owner: string;
  state: string;
  why: string;
  priority: number;
  campaign: string;
  // An evaluation of a study's cells: without specification, table and epochs. Its steps are
  // requests.
  is_evaluation: boolean;
  epoch: number;
  rules: number;
  step: number;
  score: number | null;
  error: number | null;
  share: number | null;
  workers: number;
  packets_per_second: number;
  cpu_seconds: number;
  wall_seconds: number;
  cost: number | null;
  eta_seconds: number | null;
  created: number;
  revision: number;
  fork?: { job: string; epoch: number };
}

export interface Epoch {
  epoch: number;
  time: string;
  step: number;
  rules: number;
  rules_changed: number;
  score: number | null;
  score_standard_error: number | null;
  gain: number | null;
  gain_standard_error: number | null;
  accepted: boolean | null;
  // Medians over the validation networks, of the table after the epoch.
  throughput_over_link_rate_median: number | null;
  delay_over_rtt_median: number | null;
  // Mean of packets lost over packets sent, over the same networks.
  loss_mean: number | null;
  cpu_seconds: number;
}

// Step, score, its standard error, CPU time.
export type Point = [number, number, number | null, number | null];

export interface History {
  revision: number;
  points: Point[];
  // Step, and the number of rules from then on.
  sizes: [number, number][];
  // Revision, seconds since 1970, sentence.
  entries: [number, number, string][];
  epochs: Epoch[];
}

// A line of a worker's log.
export interface WorkerLine {
  worker: string;
  host: string;
  time: number;
  level: string;
  text: string;
}

export interface Who {
  csrf: string;
  caller: string;
  role: string;
  coordinator: string;
  version: string;
  // Names of the output folders of `reproduce` and `league`.
  studies: string[];
  evaluators: { kind: string; workers: number; busy: number; threads: number };
}

export class Failure extends Error {
  constructor(
    readonly status: number,
    sentence: string,
  ) {
    super(sentence);
  }
}

let csrf = "";

// Returns the data that the server has embedded in the page, so that it can be drawn without a
// request: the session and the newest jobs; null if nobody is signed in, undefined without embedded
// data. The data is removed from the page.
export function takeEmbeddedData(): { session: Who; jobs: Update } | null | undefined {
  const element = document.getElementById("first");
  const text = element?.textContent?.trim();
  element?.remove();
  if (!text) return undefined;
  const found = JSON.parse(text) as { session: Who; jobs: Update } | null;
  if (found) csrf = found.session.csrf;
  return found;
}

export async function call<Answer>(path: string, method = "GET", body?: unknown): Promise<Answer> {
  const headers: Record<string, string> = {};
  if (method !== "GET") headers["X-CSRF-Token"] = csrf;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Failure(0, "the page's server cannot be reached");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Failure(response.status, answer.error ?? `the page's server failed (${response.status})`);
  return answer;
}

export async function who(): Promise<Who> {
  const found = await call<Who>("/api/session");
  csrf = found.csrf;
  return found;
}

export async function signIn(token: string): Promise<Who> {
  const found = await call<Who>("/api/session", "POST", { token });
  csrf = found.csrf;
  return found;
}

export async function signOut(): Promise<void> {
  await call("/api/session", "DELETE");
}

// True if the caller may see the buttons that change a job. The coordinator checks permissions
// itself.
export function mayChange(who: Who, owner: string): boolean {
  return who.role === "admin" || (who.role === "submitter" && who.caller === owner);
}

export const maySubmit = (who: Who): boolean => who.role === "admin" || who.role === "submitter";

type Update =
  | { kind: "jobs"; rows: Row[]; more?: true }
  | { kind: "changed"; rows: Row[]; gone: string[] }
  | { kind: "lost"; why: string }
  | { kind: "refused"; why: string }
  | { kind: "back" };

// The current state of all jobs, with listeners for changes.
export class Jobs {
  readonly rows = new Map<string, Row>();
  // Scores seen so far, for jobs whose first epoch is not finished.
  readonly seen = new Map<string, number[]>();
  isComplete = false;
  trouble = "";
  private readonly listeners = new Set<() => void>();
  private source?: EventSource;

  // Called when the session has ended.
  signedOut: () => void = () => undefined;

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  open(): void {
    if (this.source) return;
    const source = new EventSource("/api/updates");
    this.source = source;
    source.onmessage = ({ data }) => {
      this.take(JSON.parse(data) as Update);
      this.notifyListeners();
    };
    source.onerror = () => {
      this.trouble = "the page's server cannot be reached; trying again";
      this.notifyListeners();
      if (source.readyState !== EventSource.CLOSED) return;
      setTimeout(async () => {
        try {
          await who();
        } catch (error) {
          if ((error as Failure).status === 401) return this.signedOut();
        }
        if (this.source !== source) return;
        this.source = undefined;
        this.open();
      }, 1000);
    };
  }

  close(): void {
    this.source?.close();
    this.source = undefined;
    // Another user may sign in next.
    this.rows.clear();
    this.seen.clear();
    this.isComplete = false;
    this.trouble = "";
  }

  take(update: Update): void {
    if (update.kind === "lost" || update.kind === "refused") {
      this.trouble = update.why;
      return;
    }
    this.trouble = "";
    if (update.kind === "back") return;
    if (update.kind === "jobs") {
      this.rows.clear();
      this.isComplete = !update.more;
    } else {
      update.gone.forEach((id) => this.rows.delete(id));
    }
    for (const row of update.rows) {
      this.rows.set(row.id, row);
      if (row.score === null) continue;
      const seen = this.seen.get(row.id) ?? [];
      if (seen.at(-1) !== row.score) seen.push(row.score);
      this.seen.set(row.id, seen.slice(-60));
    }
  }

  private notifyListeners(): void {
    this.listeners.forEach((listener) => listener());
  }
}
