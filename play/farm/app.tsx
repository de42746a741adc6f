// The farm's page: the session, and which of its pages is shown.

import { render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { paletteFor, useDark } from "../src/palette";
import { takeEmbeddedData, type Failure, Jobs, maySubmit, signIn, signOut, type Who, who } from "./api";
import { JobList } from "./jobs";
import { Link, useAddress } from "./routes";
import { SubmitPage } from "./submit";
import { several } from "./format";

const SESSION_INTERVAL_MS = 15_000;

// Pages with charts. Their library takes a while to start, so it is loaded only when such a page is
// shown.
type Charted = typeof import("./chart-pages");

function SignIn({ done, trouble }: { done: (who: Who) => void; trouble: string }) {
  const [sentence, setSentence] = useState(trouble);
  return (
    <main class="sign-in">
      <h1>remy-farm</h1>
      <section>
        <form
          onSubmit={async (event) => {
            event.preventDefault();
            const token = String(new FormData(event.currentTarget).get("token") ?? "");
            try {
              done(await signIn(token));
            } catch (error) {
              setSentence((error as Failure).message);
            }
          }}
        >
          <label class="stacked">
            <span>Your token, or the code that <code>remy-farm ui</code> printed</span>
            <input type="password" name="token" autocomplete="off" required autofocus />
          </label>
          <button class="main">Sign in</button>
        </form>
        <p role="alert" class="wrong">{sentence}</p>
      </section>
    </main>
  );
}

// Describes the evaluators and how many are busy.
function evaluators({ evaluators: { kind, workers, busy, threads } }: Who): string {
  if (kind === "local") return `${several(threads, "thread")} of its own`;
  return `${several(workers, kind === "ray" ? "Ray actor" : "worker")}, ${busy} busy`;
}

function Farm({ me, sessionChanged, jobs, signedOut }: { me: Who; sessionChanged: (who: Who) => void; jobs: Jobs; signedOut: (why: string) => void }) {
  const [version, setVersion] = useState(0);
  const dark = useDark();
  const [charted, setCharted] = useState<Charted>();
  const pages = useMemo(() => charted && { ...charted, palette: paletteFor(dark) }, [charted, dark]);
  const address = useAddress();
  useLayoutEffect(() => {
    jobs.signedOut = () => signedOut("The session is over.");
    const leave = jobs.listen(() => setVersion((before) => before + 1));
    if (jobs.rows.size === 0) jobs.open();
    return () => {
      leave();
      jobs.close();
    };
  }, []);
  // The embedded data is drawn before updates arrive.
  useEffect(() => jobs.open(), []);
  useEffect(() => {
    // Workers and the token's permissions may change.
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") who().then(sessionChanged, () => undefined);
    }, SESSION_INTERVAL_MS);
    return () => clearInterval(timer);
  }, []);
  const [, first, second, third] = address.pathname.split("/").map(decodeURIComponent);
  useEffect(() => {
    if (first !== "jobs") document.title = "Jobs · remy-farm";
  }, [first]);
  const isCharted = first === "compare" || (first === "jobs" && Boolean(second));
  useLayoutEffect(() => {
    if (isCharted) void import("./chart-pages").then(setCharted);
  }, [isCharted]);
  let page = <main><h1>Not found</h1><p>There is nothing at this address.</p></main>;
  if (!first) page = <JobList jobs={jobs} version={version} />;
  else if (first === "submit" && maySubmit(me)) page = <SubmitPage />;
  else if (isCharted && !pages) page = <main><p role="status">Loading</p></main>;
  else if (pages && first === "compare") page = <pages.ComparePage ids={address.searchParams.getAll("job")} jobs={jobs} version={version} palette={pages.palette} />;
  else if (first === "play") {
    page = (
      <main class="playing">
        <h1>Tables on one network</h1>
        <iframe title="The live network" allow="clipboard-write; midi" src={`/live?${address.searchParams.getAll("table").map((each) => `table=${encodeURIComponent(each)}`).join("&")}`} />
      </main>
    );
  } else if (first === "studies" && me.studies.length > 0) {
    const shown = me.studies.find((each) => each === second) ?? me.studies[0];
    page = (
      <main class="playing">
        <h1>Studies</h1>
        <nav class="bar" aria-label="Studies">
          {me.studies.map((each) => <Link key={each} to={`/studies/${encodeURIComponent(each)}`} current={each === shown}>{each}</Link>)}
        </nav>
        <iframe key={shown} title={`The page of ${shown}`} sandbox="" src={`/studied/${encodeURIComponent(shown)}`} />
      </main>
    );
  } else if (pages && first === "jobs" && second) {
    page = <pages.JobPage key={second} id={second} jobs={jobs} who={me} palette={pages.palette} playing={third === "play" ? address.searchParams.get("epoch") : undefined} />;
  }
  return (
    <>
      <header class="top">
        <strong>remy-farm</strong>
        <nav aria-label="Pages">
          <Link to="/" current={!first} within={["jobs", "compare", "play"].includes(first)}>Jobs</Link>
          {me.studies.length > 0 && <Link to="/studies" current={first === "studies"}>Studies</Link>}
          {maySubmit(me) && <Link to="/submit" current={first === "submit"}>Submit</Link>}
        </nav>
        <span class="faint">
          {me.coordinator} · {evaluators(me)} · {me.version}
        </span>
        <span class="who">
          {me.caller || "nobody"} <small>{me.role}</small>
          <button
            onClick={async () => {
              await signOut().catch(() => undefined);
              signedOut("");
            }}
          >
            Sign out
          </button>
        </span>
      </header>
      <div role="status" class={jobs.trouble ? "trouble" : "hidden"}>{jobs.trouble && `${jobs.trouble}. What is shown is as it was last known.`}</div>
      {page}
    </>
  );
}

function Page() {
  const { jobs, session, isNobody } = useMemo(() => {
    const jobs = new Jobs();
    const found = takeEmbeddedData();
    if (found) jobs.take(found.jobs);
    return { jobs, session: found?.session, isNobody: found === null };
  }, []);
  const [me, setMe] = useState(session);
  const [state, setState] = useState<{ needsSignIn: boolean; trouble: string }>({ needsSignIn: false, trouble: "" });
  useLayoutEffect(() => {
    let isMounted = true;
    const begin = async (): Promise<void> => {
      // If somebody is signed in, updates are requested already.
      if (!isNobody) jobs.open();
      try {
        // A coordinator without tokens accepts an empty one.
        const found = isNobody
          ? signIn("")
          : who().catch((error: Failure): Promise<Who> => {
              jobs.close();
              return error.status === 401 ? signIn("") : Promise.reject(error);
            });
        setMe(await found);
      } catch (error) {
        const { status, message } = error as Failure;
        if (status === 401 || status === 403) return setState({ needsSignIn: true, trouble: "" });
        setState({ needsSignIn: false, trouble: message });
        setTimeout(() => isMounted && void begin(), 2000);
      }
    };
    if (!session) void begin();
    return () => {
      isMounted = false;
    };
  }, []);
  if (me) {
    return (
      <Farm
        me={me}
        sessionChanged={setMe}
        jobs={jobs}
        signedOut={(trouble) => {
          setMe(undefined);
          setState({ needsSignIn: true, trouble });
        }}
      />
    );
  }
  if (state.needsSignIn) return <SignIn done={setMe} trouble={state.trouble} />;
  return <main class="sign-in"><h1>remy-farm</h1><p role="status">{state.trouble ? `${state.trouble}; trying again.` : "Loading"}</p></main>;
}

render(<Page />, document.getElementById("page")!);
