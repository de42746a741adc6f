// Compares jobs: their progress, and the differences of their specifications.

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Palette } from "../src/palette";
import { type Epoch, type Failure, type Jobs, type Row, call } from "./api";
import { type Over, Pareto, ScoreCurve } from "./curves";
import { Link } from "./routes";
import { duration, money, score } from "./format";

interface Answer {
  jobs: Row[];
  differences: { path: string; values: string[] }[];
  epochs: Epoch[][];
}

export function ComparePage({ ids, jobs, version, palette }: { ids: string[]; jobs: Jobs; version: number; palette: Palette }) {
  const [answer, setAnswer] = useState<Answer>();
  const [trouble, setTrouble] = useState("");
  const [over, setOver] = useState<Over>("cpu");
  const query = ids.map((id) => `job=${encodeURIComponent(id)}`).join("&");
  const epochs = ids.map((id) => jobs.rows.get(id)?.epoch).join();
  useEffect(() => {
    let isMounted = true;
    call<Answer>(`/api/compare?${query}`).then(
      (found) => {
        if (isMounted) setAnswer(found);
        setTrouble("");
      },
      (error: Failure) => isMounted && setTrouble(error.message),
    );
    return () => {
      isMounted = false;
    };
  }, [query, epochs]);
  const curves = useMemo(
    () => answer?.jobs.map((job, i) => ({ label: `${job.name} (${job.id})`, points: [], sizes: [], epochs: answer.epochs[i] })) ?? [],
    [answer],
  );
  void version;
  if (!answer) return <main><h1>Compare</h1><p role="status">{trouble || "Loading"}</p></main>;
  const rows = answer.jobs.map((job) => jobs.rows.get(job.id) ?? job);
  const lines: [string, (row: Row) => string][] = [
    ["state", (row) => row.state],
    ["score", (row) => score(row.score, row.error)],
    ["rules", (row) => String(row.rules)],
    ["epoch", (row) => String(row.epoch)],
    ["step", (row) => String(row.step)],
    ["CPU time", (row) => duration(row.cpu_seconds)],
    ["cost", (row) => money(row.cost)],
  ];
  return (
    <main>
      <h1>Compare {rows.length} jobs</h1>
      {trouble && <p role="alert" class="wrong">{trouble}</p>}
      <p><Link to={`/play?${ids.map((id) => `table=${encodeURIComponent(id)}`).join("&")}`}>Play their tables on one network</Link></p>
      <div class="columns">
      <section>
        <h2>
          Scores of epochs, on each job's own validation networks
          <select aria-label="Scores over" value={over} onChange={(event) => setOver(event.currentTarget.value as Over)}>
            <option value="step">over steps</option>
            <option value="cpu">over CPU time</option>
          </select>
        </h2>
        <ScoreCurve histories={curves} palette={palette} over={over} />
      </section>
      <section>
        <h2>Throughput and delay</h2>
        <Pareto histories={curves} palette={palette} />
        <ul class="keys">{curves.map((each, i) => <li key={each.label}><svg width="12" height="12" aria-hidden="true"><circle cx="6" cy="6" r="5" fill={palette.flows[i % palette.flows.length]} /></svg> {each.label}</li>)}</ul>
      </section>
      </div>
      <section class="table-scroll">
        <table class="compared">
          <thead>
            <tr><th scope="col">job</th>{rows.map((row) => <th key={row.id} scope="col"><Link to={`/jobs/${row.id}`}>{row.name}</Link> <small>{row.id}</small></th>)}</tr>
          </thead>
          <tbody>
            {lines.map(([label, value]) => <tr key={label}><th scope="row">{label}</th>{rows.map((row) => <td key={row.id}>{value(row)}</td>)}</tr>)}
            {answer.differences.map((each) => (
              <tr key={each.path}><th scope="row"><code>{each.path}</code></th>{each.values.map((value, i) => <td key={i}>{value || "–"}</td>)}</tr>
            ))}
          </tbody>
        </table>
        {answer.differences.length === 0 && <p class="faint">The specifications say the same.</p>}
      </section>
    </main>
  );
}
