// The page for writing, checking and submitting a specification, with the reference beside it.

import { useEffect, useMemo, useState } from "preact/hooks";
import { type Failure, type Row, call } from "./api";
import { navigate } from "./routes";

const EXAMPLE = `name: my-first
network:
  rate_mbps: {uniform: [10, 20]}
  rtt_ms: {uniform: [100, 200]}
  senders: {integer_uniform: [1, 8]}
  buffer: infinite
  traffic:
    exponential_time: {mean_ms: 5000}
    mean_off_ms: 5000
objective:
  delta: 1
`;
const DRAFT_KEY = "remy-farm specification";

interface Answer {
  problems: string[];
  complete?: string;
  job?: Row;
}

interface Entry {
  section: string;
  key: string;
  value: string;
  unit: string;
  allowed: string;
  standard: string;
  meaning: string;
}

const plain = (text: string): string => text.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("`", "").replaceAll("\\|", "|").trim();

// Parses the rows of the reference's tables (docs/reference/spec.md).
function parseReference(markdown: string): Entry[] {
  const entries: Entry[] = [];
  let section = "";
  for (const line of markdown.split("\n")) {
    if (line.startsWith("## ")) section = line.slice(3);
    if (!line.startsWith("| `")) continue;
    const cells = line.slice(1, -1).split(/(?<!\\)\|/).map(plain);
    if (cells.length < 6) continue;
    const [key, value, unit, allowed, standard, meaning] = cells;
    entries.push({ section, key, value, unit, allowed, standard, meaning });
  }
  return entries;
}

function Reference() {
  const [markdown, setMarkdown] = useState("");
  const [query, setWanted] = useState("");
  useEffect(() => {
    call<{ markdown: string }>("/api/reference").then((found) => setMarkdown(found.markdown), () => undefined);
  }, []);
  const entries = useMemo(() => parseReference(markdown), [markdown]);
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = entries.filter((each) => words.every((word) => `${each.section} ${each.key} ${each.meaning}`.toLowerCase().includes(word)));
  return (
    <section>
      <h2>Reference</h2>
      <input type="search" class="full" aria-label="Search the reference" placeholder="A key, or a word" value={query} onInput={(event) => setWanted(event.currentTarget.value)} />
      <div class="reference" tabIndex={0} role="region" aria-label="Reference">
        {shown.map((each, i) => (
          <article key={`${each.section}.${each.key}`}>
            {shown[i - 1]?.section !== each.section && <h3>{each.section}</h3>}
            <p><code>{each.key}</code> <span class="faint">{[each.value, each.unit, each.allowed].filter(Boolean).join(", ")}{each.standard && `; ${each.standard === "required" || each.standard.startsWith("required") ? each.standard : `default ${each.standard}`}`}</span></p>
            <p>{each.meaning}</p>
          </article>
        ))}
      </div>
    </section>
  );
}

export function SubmitPage() {
  const [text, setText] = useState(sessionStorage.getItem(DRAFT_KEY) ?? EXAMPLE);
  const [name, setName] = useState("");
  const [priority, setPriority] = useState("0");
  const [answer, setAnswer] = useState<Answer>();
  const [trouble, setTrouble] = useState("");
  const [isBusy, setBusy] = useState(false);
  const change = (next: string): void => {
    setText(next);
    sessionStorage.setItem(DRAFT_KEY, next);
  };
  const send = async (validateOnly: boolean): Promise<void> => {
    setBusy(true);
    setTrouble("");
    try {
      const found = await call<Answer>("/api/jobs", "POST", { text, name: name.trim(), priority: Number(priority) || 0, validate_only: validateOnly });
      setAnswer(found);
      if (found.job) navigate(`/jobs/${found.job.id}`);
    } catch (error) {
      setAnswer(undefined);
      setTrouble((error as Failure).message);
    }
    setBusy(false);
  };
  const problems = answer?.problems ?? [];
  return (
    <main>
      <h1>Submit a design</h1>
      <div class="columns even">
        <section>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              void send(false);
            }}
          >
            <label class="stacked">
              Specification (YAML)
              <textarea
                class="spec"
                rows={26}
                spellcheck={false}
                value={text}
                aria-invalid={problems.length > 0}
                aria-describedby="problems"
                onInput={(event) => change(event.currentTarget.value)}
              />
            </label>
            <div class="bar">
              <label class="file">
                <input
                  type="file"
                  accept=".yaml,.yml,.json"
                  onChange={async (event) => {
                    const file = event.currentTarget.files?.[0];
                    if (file) change(await file.text());
                  }}
                />
                <span>Open a file</span>
              </label>
              <label>Name <input type="text" value={name} placeholder="the specification's" onInput={(event) => setName(event.currentTarget.value)} /></label>
              <label>Priority <input type="number" step="1" value={priority} onInput={(event) => setPriority(event.currentTarget.value)} /></label>
              <button type="button" disabled={isBusy} onClick={() => send(true)}>Check</button>
              <button class="main" disabled={isBusy}>Submit</button>
            </div>
          </form>
          <div id="problems" role="status">
            {trouble && <p class="wrong">{trouble}</p>}
            {problems.length > 0 && <ul class="wrong">{problems.map((each) => <li key={each}>{each}</li>)}</ul>}
            {answer?.complete && (
              <>
                <p>The coordinator would accept it. With all defaults it reads:</p>
                <pre tabIndex={0} aria-label="Complete specification">{answer.complete}</pre>
              </>
            )}
          </div>
        </section>
        <Reference />
      </div>
    </main>
  );
}
