// The list of jobs. Renders only the rows that fit on the screen.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Epoch, call, type Jobs, type Row } from "./api";
import { Link, navigate } from "./routes";
import { Sparkline } from "./sparkline";
import { count, duration, moment, money, score, shortMoment } from "./format";

const ROW_PIXELS = 40;
const EXTRA_ROWS = 6;

const SORT_KEYS: Record<string, (row: Row) => number | string> = {
  name: (row) => row.name.toLowerCase(),
  state: (row) => row.state,
  rules: (row) => -row.rules,
  score: (row) => -(row.score ?? -Infinity),
  workers: (row) => -row.workers,
  CPU: (row) => -row.cpu_seconds,
  cost: (row) => -(row.cost ?? -1),
  left: (row) => row.eta_seconds ?? Infinity,
  submitted: (row) => -row.created,
};

// The scores of a job's epochs, requested when its row is first shown and after each epoch.
const scoresOfJobs = new Map<string, { epoch: number; values: number[] }>();
const requestQueue: string[] = [];
let openRequests = 0;

function useCurve(row: Row, jobs: Jobs): number[] {
  const [, redraw] = useState(0);
  const known = scoresOfJobs.get(row.id);
  useEffect(() => {
    if (known?.epoch === row.epoch || row.step === 0) return;
    scoresOfJobs.set(row.id, { epoch: row.epoch, values: known?.values ?? [] });
    requestQueue.push(row.id);
    const next = async (): Promise<void> => {
      const id = requestQueue.pop();
      if (!id) return;
      openRequests += 1;
      try {
        const epochs = await call<Epoch[]>(`/api/jobs/${encodeURIComponent(id)}/epochs`);
        const values = epochs.map((each) => each.score).filter((each) => each !== null);
        scoresOfJobs.set(id, { epoch: scoresOfJobs.get(id)?.epoch ?? 0, values: values.slice(-60) });
      } catch {
        scoresOfJobs.delete(id);
      }
      openRequests -= 1;
      redraw((before) => before + 1);
      if (openRequests < 4) void next();
    };
    if (openRequests < 4) void next();
  }, [row.id, row.epoch, row.step === 0]);
  return (known?.values.length ?? 0) > 1 ? known!.values : (jobs.seen.get(row.id) ?? []);
}

function JobRow({ row, jobs, chosen, choose, index }: { row: Row; jobs: Jobs; chosen: boolean; choose: () => void; index: number }) {
  const curve = useCurve(row, jobs);
  const [mean, error] = score(row.score, row.error).split(" ± ");
  return (
    <tr aria-rowindex={index + 2} data-job={row.id}>
      <td>
        {!row.is_evaluation && <input type="checkbox" checked={chosen} onChange={choose} aria-label={`Compare ${row.name}`} />}
      </td>
      <th scope="row">
        <Link to={`/jobs/${row.id}`}>{row.name}</Link>
        <small title={row.why || undefined}>
          {[row.owner, row.campaign, row.is_evaluation && "evaluation"].filter(Boolean).join(" · ")}
          {row.why && row.state !== "succeeded" && <span class={row.state === "failed" ? "wrong" : ""}> · {row.why}</span>}
        </small>
      </th>
      <td class="left">
        <span class={`state ${row.state}`}>{row.state}</span>
        {row.share !== null && row.state === "running" && <small> {Math.floor(row.share * 100)} %</small>}
      </td>
      <td class="wide"><Sparkline values={curve} label={`Score of ${row.name}`} /></td>
      <td>{mean}{error && <span class="error"> ± {error}</span>}</td>
      <td class="wide">{row.rules || "–"}</td>
      <td class="wide">{row.workers || "–"}</td>
      <td class="wide">{duration(row.cpu_seconds)}</td>
      <td class="wide">{money(row.cost)}</td>
      <td class="wide">{row.state === "running" ? duration(row.eta_seconds) : "–"}</td>
      <td class="wide" title={moment(row.created)}>{shortMoment(row.created)}</td>
    </tr>
  );
}

export function JobList({ jobs, version }: { jobs: Jobs; version: number }) {
  const [text, setText] = useState("");
  const [state, setState] = useState("");
  const [order, setOrder] = useState("submitted");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [scrolled, setScrolled] = useState(0);
  const table = useRef<HTMLTableElement>(null);
  useEffect(() => {
    let due = false;
    const onScroll = (): void => {
      if (due) return;
      due = true;
      requestAnimationFrame(() => {
        due = false;
        setScrolled(Math.max(0, -(table.current?.getBoundingClientRect().top ?? 0)));
      });
    };
    addEventListener("scroll", onScroll, { passive: true });
    addEventListener("resize", onScroll);
    return () => {
      removeEventListener("scroll", onScroll);
      removeEventListener("resize", onScroll);
    };
  }, []);
  const rows = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const key = SORT_KEYS[order];
    return [...jobs.rows.values()]
      .filter((row) => !state || row.state === state)
      .filter((row) => words.every((word) => `${row.name} ${row.id} ${row.owner} ${row.campaign}`.toLowerCase().includes(word)))
      .map((row) => ({ row, key: key(row) }))
      .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : b.row.created - a.row.created))
      .map(({ row }) => row);
  }, [version, text, state, order]);
  const states = [...new Set([...jobs.rows.values()].map((row) => row.state))].sort();
  // The first screen is drawn without rows beyond it.
  const extraRows = jobs.isComplete ? EXTRA_ROWS : 0;
  const from = Math.min(rows.length, Math.max(0, Math.floor(scrolled / ROW_PIXELS) - extraRows));
  const to = Math.min(rows.length, Math.ceil((scrolled + innerHeight) / ROW_PIXELS) + extraRows);
  const compared = [...chosen].filter((id) => jobs.rows.has(id));
  const active = rows.filter((row) => row.state === "running");
  const header = (name: string, label = name, isWide = true): preact.JSX.Element => (
    <th scope="col" class={isWide ? "wide" : ""} aria-sort={order === name ? (name === "name" || name === "state" || name === "left" ? "ascending" : "descending") : undefined}>
      <button class="plain" onClick={() => setOrder(name)}>{label}</button>
    </th>
  );
  return (
    <main class="list">
      <h1>Jobs</h1>
      <div class="bar filters">
        <input type="search" placeholder="Name, id, owner or campaign" aria-label="Search jobs" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <select aria-label="State" value={state} onChange={(event) => setState(event.currentTarget.value)}>
          <option value="">Any state</option>
          {states.map((each) => <option key={each} value={each}>{each}</option>)}
        </select>
        <button disabled={compared.length < 2} onClick={() => navigate(`/compare?${compared.map((id) => `job=${id}`).join("&")}`)}>
          Compare{compared.length > 1 ? ` ${compared.length}` : ""}
        </button>
        <span class="faint" role="status">
          {jobs.isComplete ? `${rows.length} of ${jobs.rows.size} jobs · ${active.length} running · ${count(active.reduce((sum, row) => sum + row.packets_per_second, 0))} packets/s` : "Loading"}
        </span>
      </div>
      <section class="table-scroll">
        <table ref={table} aria-rowcount={rows.length + 1}>
          <thead>
            <tr aria-rowindex={1}>
              <th scope="col"><span class="hidden">Compare</span></th>
              {header("name", "job", false)}
              {header("state", "state", false)}
              <th scope="col" class="wide">score by epoch</th>
              {header("score", "score", false)}
              {header("rules")}
              {header("workers")}
              {header("CPU", "CPU time")}
              {header("cost")}
              {header("left", "time left")}
              {header("submitted")}
            </tr>
          </thead>
          <tbody>
            {from > 0 && <tr class="space" aria-hidden="true" style={{ height: `${from * ROW_PIXELS}px` }} />}
            {rows.slice(from, to).map((row, i) => (
              <JobRow
                key={row.id}
                row={row}
                jobs={jobs}
                index={from + i}
                chosen={chosen.has(row.id)}
                choose={() => {
                  const next = new Set(chosen);
                  if (!next.delete(row.id)) next.add(row.id);
                  setChosen(next);
                }}
              />
            ))}
            {to < rows.length && <tr class="space" aria-hidden="true" style={{ height: `${(rows.length - to) * ROW_PIXELS}px` }} />}
          </tbody>
        </table>
        {jobs.isComplete && rows.length === 0 && <p class="faint">{jobs.rows.size === 0 ? "There are no jobs yet: submit one here, or by remy-farm submit." : "No job matches."}</p>}
      </section>
    </main>
  );
}
