// A job's page: its score, tables, status and history, and the actions on it.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Palette } from "../src/palette";
import { type Epoch, type Failure, type History, type Jobs, type Row, type Who, type WorkerLine, call, mayChange, maySubmit } from "./api";
import { type Over, Pareto, ScoreCurve } from "./curves";
import { Link, navigate } from "./routes";
import { TableMaps } from "./tables";
import { count, duration, moment, money, score, several, shortMoment } from "./format";

interface Answer {
  row: Row;
  job: Record<string, unknown>;
  yaml: string;
}

const EMPTY_HISTORY: History = { revision: 0, points: [], sizes: [], entries: [], epochs: [] };

function useHistory(id: string, revision: number | undefined): [History, string] {
  const [found, setFound] = useState<History>(EMPTY_HISTORY);
  const [trouble, setTrouble] = useState("");
  const state = useRef({ history: EMPTY_HISTORY, isAsking: false, id });
  useEffect(() => {
    const current = state.current;
    if (current.id !== id) Object.assign(current, { history: EMPTY_HISTORY, id });
    if (revision === undefined || current.isAsking || revision <= current.history.revision) return;
    current.isAsking = true;
    call<History>(`/api/jobs/${id}/history?after=${current.history.revision}`)
      .then((more) => {
        if (current.id !== id) return;
        const { points, sizes, entries } = current.history;
        current.history = {
          revision: more.revision,
          points: [...points, ...more.points],
          sizes: [...sizes, ...more.sizes],
          entries: [...entries, ...more.entries],
          epochs: more.epochs,
        };
        setFound(current.history);
        setTrouble("");
      }, (error: Failure) => setTrouble(error.message))
      .finally(() => {
        current.isAsking = false;
      });
  }, [id, revision]);
  return [found, trouble];
}

const PAUSABLE = ["pending", "scheduling", "running", "recovering"];
const RESUMABLE = ["paused", "failed"];
const CANCELLABLE = [...PAUSABLE, "pausing", "paused"];

interface ActionsProps {
  row: Row;
  who: Who;
  epochs: Epoch[];
  notify: (sentence: string, isWrong?: boolean) => void;
}

const BUDGETS: [string, string][] = [
  ["epochs", "Epochs in all"],
  ["steps", "Steps in all"],
  ["cpu_seconds", "CPU seconds in all"],
  ["wall_seconds", "Seconds in all"],
  ["joint_steps", "Steps of the schedule"],
];

function Actions({ row, who, epochs, notify }: ActionsProps) {
  const [open, setOpen] = useState<"" | "fork" | "extend" | "cancel">("");
  const [isBusy, setBusy] = useState(false);
  const act = async (action: string, body?: unknown): Promise<void> => {
    setBusy(true);
    try {
      const { job } = await call<{ job: Row }>(`/api/jobs/${row.id}/${action}`, "POST", body);
      setOpen("");
      if (action === "fork") {
        navigate(`/jobs/${job.id}`);
        notify(`This job begins with a table of ${row.name}.`);
      } else {
        notify(`${job.name} is ${job.state}.`);
      }
    } catch (error) {
      notify((error as Failure).message, true);
    }
    setBusy(false);
  };
  const form = (fields: HTMLFormElement): Record<string, string> => Object.fromEntries([...new FormData(fields)].map(([name, value]) => [name, String(value).trim()]));
  const numbers = (given: Record<string, string>, names: string[]): Record<string, number> =>
    Object.fromEntries(names.filter((name) => given[name]).map((name) => [name, Number(given[name])]));
  const changes = mayChange(who, row.owner);
  return (
    <>
      <div class="bar">
        {changes && PAUSABLE.includes(row.state) && <button disabled={isBusy} onClick={() => act("pause")}>Pause</button>}
        {changes && RESUMABLE.includes(row.state) && <button disabled={isBusy} onClick={() => act("resume")}>Resume</button>}
        {changes && CANCELLABLE.includes(row.state) && <button disabled={isBusy} onClick={() => setOpen("cancel")}>Cancel</button>}
        {changes && <button aria-expanded={open === "extend"} onClick={() => setOpen(open === "extend" ? "" : "extend")}>{row.is_evaluation ? "Priority" : "Extend or priority"}</button>}
        {maySubmit(who) && !row.is_evaluation && <button aria-expanded={open === "fork"} onClick={() => setOpen(open === "fork" ? "" : "fork")}>Fork</button>}
        {!row.is_evaluation && (row.rules > 0 || epochs.length > 0) && <Link to={`/jobs/${row.id}/play`}>Play its table</Link>}
      </div>
      {open === "cancel" && (
        <div class="asked" role="alertdialog" aria-label="Cancel the job">
          <span>End {row.name}? {row.is_evaluation ? "What is evaluated stays." : "Its best table stays."}</span>
          <button class="main" onClick={() => act("cancel")}>End it</button>
          <button onClick={() => setOpen("")}>Leave it</button>
        </div>
      )}
      {open === "extend" && (
        <form
          class="asked"
          aria-label={row.is_evaluation ? "Priority" : "Extend"}
          onSubmit={(event) => {
            event.preventDefault();
            void act("extend", numbers(form(event.currentTarget), [...BUDGETS.map(([name]) => name), "priority"]));
          }}
        >
          {!row.is_evaluation && BUDGETS.map(([name, label]) => (
            <label key={name}>{label}<input type="number" name={name} min="1" step={name.endsWith("seconds") ? "any" : "1"} /></label>
          ))}
          <label>Priority<input type="number" name="priority" step="1" placeholder={String(row.priority)} /></label>
          <button class="main" disabled={isBusy}>Change it</button>
        </form>
      )}
      {open === "fork" && (
        <form
          class="asked"
          aria-label="Fork"
          onSubmit={(event) => {
            event.preventDefault();
            const given = form(event.currentTarget);
            void act("fork", { ...numbers(given, ["epoch", "priority"]), name: given.name, settings: given.settings.split("\n") });
          }}
        >
          <label>
            Begins with
            <select name="epoch">
              <option value="">the best table so far</option>
              {epochs.map((each) => <option key={each.epoch} value={each.epoch}>epoch {each.epoch}, {several(each.rules, "rule")}</option>)}
            </select>
          </label>
          <label>Name<input type="text" name="name" placeholder={row.name} /></label>
          <label>Priority<input type="number" name="priority" step="1" placeholder={String(row.priority)} /></label>
          <label class="wide">Settings that differ, one a line<textarea name="settings" rows={2} placeholder="objective.delta=0.1" /></label>
          <button class="main" disabled={isBusy}>Fork it</button>
        </form>
      )}
    </>
  );
}

function Status({ row }: { row: Row }) {
  const design: [string, string][] = [
    ["score", score(row.score, row.error)],
    ["rules", row.rules === 0 ? "–" : String(row.rules)],
    ["epoch", String(row.epoch)],
  ];
  const pairs: [string, string][] = [
    ...(row.is_evaluation ? [] : design),
    [row.is_evaluation ? "parts" : "step", row.share === null ? String(row.step) : `${row.step}, ${Math.floor(row.share * 100)} % done`],
    ["workers", String(row.workers)],
    ["packets/s", count(row.packets_per_second)],
    ["CPU time", duration(row.cpu_seconds)],
    ["cost", money(row.cost)],
    ["time left", row.state === "running" ? duration(row.eta_seconds) : "–"],
    ["priority", String(row.priority)],
    ["owner", row.owner || "–"],
    ["submitted", shortMoment(row.created)],
  ];
  return <dl class="figures">{pairs.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

function Epochs({ row, epochs }: { row: Row; epochs: Epoch[] }) {
  if (epochs.length === 0) return <p class="faint">No epoch is over yet.</p>;
  return (
    <div class="table-scroll short" tabIndex={0} role="region" aria-label="Epochs">
      <table>
        <thead>
          <tr>{["epoch", "step", "rules", "changed", "score", "gain", "kept", "CPU time", "table"].map((each) => <th key={each} scope="col">{each}</th>)}</tr>
        </thead>
        <tbody>
          {[...epochs].reverse().map((each) => (
            <tr key={each.epoch}>
              <th scope="row">{each.epoch}</th>
              <td>{each.step}</td>
              <td>{each.rules}</td>
              <td>{each.rules_changed}</td>
              <td>{score(each.score, each.score_standard_error)}</td>
              <td>{score(each.gain, each.gain_standard_error, true)}</td>
              <td>{each.accepted === null ? "–" : each.accepted ? "yes" : "no"}</td>
              <td>{duration(each.cpu_seconds)}</td>
              <td><Link to={`/jobs/${row.id}/play?epoch=${each.epoch}`}>Play epoch {each.epoch}</Link></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const LINES_INTERVAL_MS = 3000;

// The last lines of the job's workers' logs, polled while they are shown.
function WorkerLines({ job }: { job: string }) {
  const [isOpen, setOpen] = useState(false);
  const [lines, setLines] = useState<WorkerLine[]>();
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    if (!isOpen) return;
    let timer = 0;
    let isMounted = true;
    const ask = async (): Promise<void> => {
      try {
        const found = await call<WorkerLine[]>(`/api/jobs/${job}/lines`);
        if (isMounted) setLines(found);
        setTrouble("");
      } catch (error) {
        setTrouble((error as Failure).message);
      }
      if (isMounted) timer = window.setTimeout(ask, LINES_INTERVAL_MS);
    };
    void ask();
    return () => {
      isMounted = false;
      clearTimeout(timer);
    };
  }, [job, isOpen]);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>What its workers say</summary>
      {trouble && <p role="alert">{trouble}</p>}
      {lines?.length === 0 && <p class="faint">No worker has said anything. Threads of the coordinator and actors of Ray log where they run.</p>}
      <ol class="lines" tabIndex={0} aria-label="Last lines of workers">
        {[...(lines ?? [])].reverse().map((each, i) => (
          <li key={i} class={each.level}><time>{moment(each.time)}</time> <b>{each.host || each.worker}</b> {each.level}: {each.text}</li>
        ))}
      </ol>
    </details>
  );
}

export function JobPage({ id, jobs, who, palette, playing }: { id: string; jobs: Jobs; who: Who; palette: Palette; playing: string | null | undefined }) {
  const [answer, setAnswer] = useState<Answer>();
  const [notice, setNotice] = useState({ sentence: "", isWrong: false });
  const [over, setOver] = useState<Over>("step");
  const row = jobs.rows.get(answer?.row.id ?? id) ?? answer?.row;
  const [history, trouble] = useHistory(row?.id ?? id, row?.revision);
  const priority = row?.priority;
  useEffect(() => {
    let isMounted = true;
    call<Answer>(`/api/jobs/${encodeURIComponent(id)}`).then(
      (found) => isMounted && setAnswer(found),
      (error: Failure) => isMounted && setNotice({ sentence: error.message, isWrong: true }),
    );
    return () => {
      isMounted = false;
    };
  }, [id, priority, jobs.trouble === ""]);
  useEffect(() => {
    if (row) document.title = `${row.name} · remy-farm`;
  }, [row?.name]);
  const curve = useMemo(() => (row ? [{ label: row.name, ...history }] : []), [history, row?.name]);
  if (!row) return <main><p role="status">{notice.sentence || "Loading"}</p></main>;
  const title = (
    <header class="job">
      <h1>{row.name}</h1>
      <code>{row.id}</code>
      <span class={`state ${row.state}`}>{row.state}</span>
      <span class="faint">{row.why}</span>
      {row.fork && <span class="faint">forked from <Link to={`/jobs/${row.fork.job}`}>{row.fork.job}</Link>, epoch {row.fork.epoch}</span>}
    </header>
  );
  if (playing !== undefined) {
    const named = playing === null ? row.id : `${row.id}:${playing}`;
    return (
      <main class="playing">
        {title}
        <p><Link to={`/jobs/${row.id}`}>Back to the job</Link></p>
        <iframe title={`The live network with the table of ${row.name}`} src={`/live?table=${encodeURIComponent(named)}`} allow="clipboard-write; midi" />
      </main>
    );
  }
  return (
    <main>
      {title}
      <Actions key={row.id} row={row} who={who} epochs={history.epochs} notify={(sentence, isWrong = false) => setNotice({ sentence, isWrong })} />
      <p class={notice.isWrong ? "notice wrong" : "notice"} role={notice.isWrong ? "alert" : "status"}>{notice.sentence || trouble}</p>
      <div class="columns">
        <div>
          {!row.is_evaluation && <section class="main-column">
            <h2>
              Score
              <select aria-label="Score over" value={over} onChange={(event) => setOver(event.currentTarget.value as Over)}>
                <option value="step">over steps</option>
                <option value="cpu">over CPU time</option>
              </select>
            </h2>
            {history.points.length + history.epochs.length > 0 ? <ScoreCurve histories={curve} palette={palette} over={over} /> : <p class="faint">No step is done yet.</p>}
            <p class="faint">The line is the table being worked on, dots are epochs on validation networks, ticks are divisions and merges of rules.</p>
            <h2>Epochs</h2>
            <Epochs row={row} epochs={history.epochs} />
          </section>}
          <section class="past">
            <h2>History</h2>
            <ol class="entries" tabIndex={0} aria-label="History">
              {[...history.entries].reverse().slice(0, 300).map(([revision, seconds, sentence]) => (
                <li key={revision}><time>{moment(seconds)}</time> {sentence}</li>
              ))}
            </ol>
            <WorkerLines job={row.id} />
          </section>
        </div>
        <div>
          <section><h2>Now</h2><Status row={row} /></section>
          {!row.is_evaluation && <section><h2>Throughput and delay</h2><Pareto histories={curve} palette={palette} /></section>}
          {!row.is_evaluation && <section><h2>Tables</h2><TableMaps job={row.id} epochs={history.epochs} palette={palette} /></section>}
          {!row.is_evaluation && <section>
            <h2>Specification</h2>
            <pre tabIndex={0} aria-label="Specification">{answer?.yaml ?? ""}</pre>
          </section>}
        </div>
      </div>
    </main>
  );
}
