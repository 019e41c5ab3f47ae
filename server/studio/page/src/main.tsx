import { render } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import "@preact/signals";
import { get, Problem } from "./api";
import { Dialog, useLoaded } from "./parts/common";
import { Agent } from "./pages/agent";
import { isFramed } from "./parts/intent";
import { LateAnswers } from "./parts/late";
import { Chat } from "./pages/chat";
import { Home } from "./pages/home";
import { Inbox } from "./pages/inbox";
import { RunPage } from "./pages/pair";
import { Runs } from "./pages/runs";
import { Palette } from "./parts/palette";
import { exact } from "./format";
import { followLink, go, route } from "./router";
import { share } from "./share";
import { isShortcut } from "./target";
import type { OpenQuestion, Page } from "./types";

const allKeys: [string, string][] = [
  ["g h", "home"],
  ["g i", "inbox"],
  ["g r", "runs"],
  ["Ctrl K", "go to a page, an agent or a run"],
  ["j k", "next and previous question or run"],
  ["x", "select the run"],
  ["/", "search runs"],
  ["1 – 9", "answer the question"],
  ["[ ]", "earlier and later moment of a run"],
  ["f", "fork the run here"],
  ["?", "these keys"],
];
const keys = share ? allKeys.filter(([k]) => k === "[ ]" || k === "?") : allKeys;

function App() {
  const [help, setHelp] = useState(false);
  const [palette, setPalette] = useState(false);
  const questions = useLoaded((s) => (share ? Promise.resolve({ items: [] }) : get<Page<OpenQuestion>>("questions?limit=100", s)), [], share ? 0 : 3000);
  useLayoutEffect(() => {
    let last = "";
    const onKey = (e: KeyboardEvent) => {
      if (!share && (e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key === "k" && !document.querySelector("dialog[open]")) {
        e.preventDefault();
        setPalette(true);
      }
      if (!isShortcut(e)) return;
      if (e.key === "?") setHelp(true);
      else if (share) return;
      else if (last === "g" && e.key === "h") go("./");
      else if (last === "g" && e.key === "i") go("inbox");
      else if (last === "g" && e.key === "r") go("runs");
      last = e.key;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const open = questions.value?.items.length ?? 0;
  const r = route.value;
  useEffect(() => {
    const names = { home: "Home", inbox: "Inbox", runs: "Runs", agent: "", run: "", chat: "", unknown: "Nothing here" };
    document.title = (names[r.page] || ("run" in r ? r.run : "agent" in r ? r.agent : "")) + " · raddle";
  }, [r]);
  return (
    <div onClick={followLink}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <nav aria-label="Pages">
        {share ? <Origin /> : <Links page={r.page} open={open} onSearch={() => setPalette(true)} />}
        <button type="button" class="plain" onClick={() => setHelp(true)} aria-label="Keys">
          ?
        </button>
      </nav>
      <LateAnswers />
      {r.page === "home" && <Home />}
      {r.page === "inbox" && <Inbox />}
      {r.page === "runs" && <Runs filter={r.filter} after={r.after} />}
      {r.page === "agent" && <Agent key={r.agent} name={r.agent} />}
      {r.page === "run" && <RunPage key={r.run} run={r.run} at={r.at} sel={r.sel} tab={r.tab} beside={r.beside} view={r.view} />}
      {r.page === "chat" && <Chat key={r.agent} agent={r.agent} session={r.session} />}
      {r.page === "unknown" && (
        <main id="main" class="narrow">
          <h1>Nothing here</h1>
          <p>
            This address leads to no page. <a href="./">Home</a>
          </p>
        </main>
      )}
      {palette && <Palette onClose={() => setPalette(false)} />}
      {help && (
        <Dialog title="Keys" onClose={() => setHelp(false)}>
          <dl class="keylist">
            {keys.map(([k, what]) => (
              <>
                <dt>
                  <kbd>{k}</kbd>
                </dt>
                <dd>{what}</dd>
              </>
            ))}
          </dl>
        </Dialog>
      )}
    </div>
  );
}

// Links lead to the pages that are not about one thing.
function Links({ page, open, onSearch }: { page: string; open: number; onSearch(): void }) {
  return (
    <>
      <a href="./" class="brand" aria-current={page === "home" ? "page" : undefined}>
        raddle
      </a>
      <a href="inbox" aria-current={page === "inbox" ? "page" : undefined}>
        Inbox{" "}
        {open > 0 && (
          <span class="count" aria-label={`${open} open`}>
            {open}
          </span>
        )}
      </a>
      <a href="runs" aria-current={page === "runs" ? "page" : undefined}>
        Runs
      </a>
      <button type="button" class="search" onClick={onSearch}>
        Go to … <kbd>Ctrl K</kbd>
      </button>
    </>
  );
}

// Origin says where a page in a file comes from.
function Origin() {
  return (
    <>
      <span class="brand">raddle</span>
      <span class="dim">
        A run, as it was at {exact(share?.written ?? "")}. Secrets that raddle knew were taken out.
      </span>
    </>
  );
}

// LogIn is shown to a browser that has no session.
function LogIn() {
  return (
    <main id="main" class="narrow">
      <h1>Log in</h1>
      <p>
        This browser has no session. Run <code>raddle studio</code>, open the address that <code>raddle serve</code> prints, or{" "}
        <a href="login" target="_self">
          log in with a token
        </a>
        .
      </p>
    </main>
  );
}

async function start(): Promise<void> {
  const root = document.getElementById("app")!;
  if (isFramed()) {
    render(<p>This page does not work inside of another one.</p>, root);
    return;
  }
  try {
    if (!share) await get("questions?limit=1");
  } catch (e) {
    if (e instanceof Problem && e.status === 401) {
      render(<LogIn />, root);
      return;
    }
  }
  render(<App />, root);
}

void start();
