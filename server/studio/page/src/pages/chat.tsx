import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, isAborted, post, Problem, words } from "../api";
import { visible } from "../format";
import { type Connection, follow, isFinal } from "../live";
import { Markdown } from "../markdown";
import { Ago, DiffText, Failure, useLoaded, useMedia, useSettled } from "../parts/common";
import { Json } from "../parts/json";
import { AnswerForm, takesAnswers } from "../parts/question";
import { Status } from "../parts/status";
import { Replies } from "../replies";
import { go, runPath } from "../router";
import type { Branch, Conversation, Entry, LastRun, Page, Part, Run, Session } from "../types";

const refreshEvery = 250;
const lookEvery = 3000;
const longestLag = 1000; // of the events of a run

// chatPath returns the address of a conversation.
export function chatPath(agent: string, session?: string): string {
  return `chat/${encodeURIComponent(agent)}${session ? "/" + encodeURIComponent(session) : ""}`;
}

// textOf returns the parts of a message that have a type, as one text.
function textOf(e: Entry, type: string): string {
  return (e.message?.parts ?? [])
    .filter((p) => p.type === type)
    .map((p) => p.text ?? "")
    .join("");
}

// Arrived is a reply that is complete. It is part of what is read from the record on with which its step ends.
interface Arrived {
  text: string;
  until?: number;
}

// useConversation reads what was said in a session, and follows its newest run.
function useConversation(agent: string, session: string) {
  const [talk, setTalk] = useState<Conversation | null>(null);
  const [view, setView] = useState<LastRun | null>(null);
  const [branches, setBranches] = useState<Branch[]>([]);
  const [error, setError] = useState("");
  const [arriving, setArriving] = useState<string[]>([]);
  const [connection, setConnection] = useState<Connection>("open");
  const reload = useRef(() => {});
  useEffect(() => {
    if (!session) return;
    const stop = new AbortController();
    const place = `sessions/${encodeURIComponent(agent)}/${encodeURIComponent(session)}`;
    let replies = new Replies();
    let complete: Arrived[] = []; // oldest first
    let followed = ""; // the run whose events come
    let state: Connection = "ended";
    let seen = 0; // the newest record of which an event has come
    let reached = () => {}; // called when seen or state changes
    let unfollow = () => {};
    let timer = 0;
    let known = "";
    let knownBranches = "";
    let loading = false;
    let again = false;
    const show = () => setArriving([...complete.map((r) => r.text), ...replies.list().filter((r) => r.path === "").map((r) => r.text)]);
    // seeAll waits until the events have come as far as what was read: what is shown of a reply is replaced by the whole at once.
    const seeAll = (record: number) =>
      new Promise<void>((done) => {
        const timer = setTimeout(done, longestLag);
        reached = () => {
          if (seen < record && state === "open" && !stop.signal.aborted) return;
          clearTimeout(timer);
          done();
        };
        reached();
      });
    const read = async () => {
      const c = await get<Conversation>(place, stop.signal);
      // Only the view of the run has all of its questions. It is much more work for the server.
      const r = c.status === "waiting" ? await get<Run>("runs/" + encodeURIComponent(c.run), stop.signal) : { ...c, questions: null };
      // The branches change only with a turn.
      const b = knownBranches === c.run ? null : await get<{ branches: Branch[] }>(place + "/branches", stop.signal);
      if (c.run === followed) await seeAll(c.record);
      if (stop.signal.aborted) return;
      if (c.run !== followed) start(c.run, c.record, isFinal(c.status));
      else if (!isWorking(c.status) && seen <= c.record) {
        replies = new Replies();
        complete = [];
      } else complete = complete.filter((reply) => reply.until === undefined || reply.until > c.record);
      known = `${c.run} ${c.updated}`;
      knownBranches = c.run;
      setTalk(c);
      setView(r);
      if (b) setBranches(b.branches);
      setError("");
      show();
    };
    // load reads the conversation, again if it was called meanwhile: an older answer never replaces a newer one.
    const load = async () => {
      again = loading;
      if (loading) return;
      loading = true;
      try {
        do {
          again = false;
          await read();
        } while (again && !stop.signal.aborted);
      } catch (e) {
        if (e instanceof Problem && e.code === "unknown-session") {
          setTalk(null);
          setView(null);
          setBranches([]);
        } else if (!isAborted(e)) setError(words(e));
      }
      loading = false;
    };
    const schedule = () => {
      if (timer === 0)
        timer = window.setTimeout(() => {
          timer = 0;
          void load();
        }, refreshEvery);
    };
    const connect = (c: Connection) => {
      state = c;
      setConnection(c);
      reached();
    };
    // start follows a run from a record on. One that has ended says nothing more.
    const start = (run: string, record: number, ended: boolean) => {
      unfollow();
      if (run !== followed) {
        replies = new Replies();
        complete = [];
      }
      followed = run;
      seen = record;
      connect(ended ? "ended" : "open");
      if (ended) return;
      unfollow = follow(run, record, {
        onEvent(e) {
          const { piece, complete: reply } = replies.add(e);
          if (reply && reply.path === "" && reply.text) complete.push({ text: reply.text });
          if (!e.path && (e.kind === "step.committed" || e.kind === "run.ended")) for (const r of complete) r.until ??= e.seq;
          seen = Math.max(seen, e.seq);
          reached();
          if (!piece) schedule();
        },
        onConnection(c) {
          connect(c);
          if (c === "open") replies.expectAgain();
          if (c !== "lost") schedule();
        },
      });
    };
    // look finds a turn that was added elsewhere: in a terminal or in another page.
    const look = async () => {
      if (state !== "ended" || loading) return;
      const c = await get<Conversation>(place, stop.signal).catch(() => null);
      if (c && `${c.run} ${c.updated}` !== known) void load();
    };
    const frames = setInterval(() => replies.takeChange() && show(), 100);
    const looks = setInterval(() => void look(), lookEvery);
    reload.current = () => {
      if (followed && state !== "ended") start(followed, seen, false); // without the wait for the next try
      void load();
    };
    void load();
    return () => {
      stop.abort();
      reached();
      unfollow();
      clearTimeout(timer);
      clearInterval(frames);
      clearInterval(looks);
    };
  }, [agent, session]);
  return { talk, view, branches, error, arriving, connection, reload: () => reload.current() };
}

// isWorking reports whether a run with a status may say more by itself.
function isWorking(status: string): boolean {
  return status === "running" || status === "queued";
}

// Chat shows the conversations with an agent, and one of them.
export function Chat({ agent, session }: { agent: string; session: string }) {
  const [news, setNews] = useState("");
  return (
    <div class="chat">
      <Sessions agent={agent} current={session} news={news} />
      <Talk key={familyOf(session)} agent={agent} session={session} onNews={setNews} />
    </div>
  );
}

// familyOf returns the name of a conversation, which its branches share.
function familyOf(session: string): string {
  return session.replace(/~\d+$/, "");
}

// Sessions lists the conversations with an agent, newest first, or those in which a text was said.
function Sessions({ agent, current, news }: { agent: string; current: string; news: string }) {
  const narrow = useMedia("(max-width: 720px)");
  const [search, setSearch] = useState("");
  const text = useSettled(search.trim(), 300);
  const query = `sessions?limit=200&agent=${encodeURIComponent(agent)}` + (text ? "&text=" + encodeURIComponent(text) : "");
  const sessions = useLoaded((s) => get<Page<Session>>(query, s), [query], text ? 0 : 3000);
  useEffect(() => sessions.reload(), [current, news]); // the conversation may be new, or work, or have ended
  const families = new Set<string>();
  const list = (sessions.value?.items ?? [])
    .sort((a, b) => b.updated.localeCompare(a.updated))
    .filter((s) => !families.has(familyOf(s.session)) && families.add(familyOf(s.session)));
  return (
    <aside class="sessions" aria-label="Conversations">
      <h2>
        <a href={"agents/" + encodeURIComponent(agent)}>{visible(agent)}</a>
      </h2>
      <a class="button" href={chatPath(agent)} aria-current={current === "" ? "page" : undefined}>
        New conversation
      </a>
      <details open={!narrow} key={narrow + current}>
        <summary>Conversations</summary>
        <input type="search" placeholder="Search what was said" aria-label="Search conversations" value={search} onInput={(e) => setSearch(e.currentTarget.value)} />
        <Failure text={sessions.error} />
        <ul>
          {list.map((s) => (
            <li key={s.session}>
              <a href={chatPath(agent, s.session)} aria-current={familyOf(s.session) === familyOf(current) ? "page" : undefined}>
                <span class="name">{visible(familyOf(s.session))}</span>
                <span class="dim">
                  {["running", "waiting", "failed"].includes(s.status) ? s.status + ", " : ""}
                  <Ago time={s.updated} />
                </span>
              </a>
            </li>
          ))}
        </ul>
        {sessions.value && list.length === 0 && <p class="dim">{text ? "Nothing like this was said." : "There is no conversation yet."}</p>}
      </details>
    </aside>
  );
}

// nameSession returns a name for a conversation that begins with a text.
function nameSession(text: string): string {
  const first = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 32)
    .replace(/-+$/, "");
  return `${first || "chat"}-${Math.floor(Math.random() * 36 ** 4).toString(36)}`;
}

// The session whose next message is written as soon as it is shown.
let writeNext = "";

// Talk is one conversation, on one of its branches. onNews gets a text that changes with the status of its newest run.
function Talk({ agent, session, onNews }: { agent: string; session: string; onNews(text: string): void }) {
  const { talk, view, branches, error, arriving, connection, reload } = useConversation(agent, session);
  const [failure, setFailure] = useState("");
  const [queued, setQueued] = useState<string[]>([]); // what the agent that works has not taken up yet
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const busy = !!view && isWorking(view.status);
  const waits = !!view && view.status === "waiting";
  useEffect(() => onNews(view ? `${view.run} ${view.status}` : ""), [view?.run, view?.status]);
  useLayoutEffect(() => {
    if (session && writeNext === session) document.getElementById("message")?.focus();
    writeNext = "";
  }, [session]);
  const turns = useMemo(() => toTurns(talk?.messages ?? []), [talk]);
  useEffect(() => {
    const taken = turns.filter((t) => t.role === "user" && t.run === view?.run).map((t) => t.text);
    setQueued((list) => (busy ? list.filter((text) => !taken.includes(text)) : []));
  }, [turns, busy]);
  useMemo(() => {
    if (waits) atEnd.current = true; // the question must be seen
  }, [waits]);
  useLayoutEffect(() => {
    const b = box.current;
    if (b && atEnd.current) b.scrollTop = b.scrollHeight;
  });
  const act = async (verb: string, otherwise?: string) => {
    setFailure("");
    const path = "runs/" + encodeURIComponent(view!.run) + "/";
    try {
      await post(path + verb).catch((e: unknown) => {
        if (!otherwise || !(e instanceof Problem && e.code === "stale")) throw e;
        return post(path + otherwise); // another process drives the run
      });
    } catch (e) {
      setFailure(words(e));
    }
    reload();
  };
  const send = async (prompt: string, files: Sent[]) => {
    if (busy && view) {
      if (files.length) throw new Error("The agent is working. Send files when it is done, or stop it.");
      try {
        await post(`runs/${encodeURIComponent(view.run)}/messages`, { text: prompt });
        atEnd.current = true;
        setQueued((list) => [...list, prompt]);
        return;
      } catch (e) {
        if (!(e instanceof Problem && e.code === "stale")) throw e; // else the turn has just ended
      }
    }
    const name = session || nameSession(prompt || (files[0]?.name ?? ""));
    // A turn that failed or was stopped has not ended: it ends before the next one starts.
    if (view && !busy && !isFinal(view.status)) await post(`runs/${encodeURIComponent(view.run)}/cancel`);
    await post("runs", { agent, session: name, prompt, ...(files.length ? { files } : {}) });
    atEnd.current = true;
    if (name === session) return reload();
    writeNext = name;
    go(chatPath(agent, name));
  };
  // replace sends another message in the place of the one that began a run, on another branch.
  const replace = async (run: string, prompt: string, files: Sent[]) => {
    const made = await post<{ session: string }>(`sessions/${encodeURIComponent(agent)}/${encodeURIComponent(session)}/branches`, { before: run });
    await post("runs", { agent, session: made.session, prompt, ...(files.length ? { files } : {}) });
    writeNext = made.session;
    atEnd.current = true;
    go(chatPath(agent, made.session));
  };
  const current = branches.find((b) => b.current);
  return (
    <main id="main" class={waits ? "talk waits" : "talk"}>
      <header class="bar">
        <h1>{session ? visible(familyOf(session)) : "New conversation"}</h1>
        {view && <Status status={view.status} />}
        <span class="connection" role="status">
          {connection === "lost" ? "Connection lost. The page connects again by itself." : ""}
        </span>
        {branches.length > 1 && (
          <label class="branch">
            Branch{" "}
            <select value={session} onChange={(e) => go(chatPath(agent, e.currentTarget.value))}>
              {branches.map((b) => (
                <option key={b.session} value={b.session}>
                  {visible(`${b.name}: ${b.last}`)}
                </option>
              ))}
            </select>
          </label>
        )}
      </header>
      <div
        class="messages"
        ref={box}
        role="log"
        aria-label="Conversation"
        tabIndex={0}
        onScroll={(e) => {
          const b = e.currentTarget;
          atEnd.current = b.scrollHeight - b.scrollTop - b.clientHeight < 40;
        }}
      >
        {turns.length === 0 && arriving.length === 0 && <p class="empty">Write a message. raddle saves each turn: a conversation continues here or with raddle chat.</p>}
        {turns.map((t, i) => (
          <TurnView key={`${i} ${t.run}`} turn={t} agent={agent} versions={findVersions(branches, current, t.run)} onReplace={t.first && !busy && current?.runs.includes(t.run) ? (text) => replace(t.run, text, t.media) : undefined} />
        ))}
        {arriving.map((text, i) => (
          <article key={"arriving" + i} class="said assistant" aria-label="The agent" aria-busy={busy}>
            <Markdown text={text} />
          </article>
        ))}
        {busy && arriving.length === 0 && <p class="dim working">Working…</p>}
        {queued.map((text, i) => (
          <article key={"queued" + i} class="said user queued" aria-label="Your message">
            <div class="text">{visible(text)}</div>
            <footer class="turn dim">waits for the agent's next request</footer>
          </article>
        ))}
        {view && waits && view.questions?.filter(takesAnswers).map((q) => <AnswerForm key={q.id} run={view.run} q={q} onAnswered={reload} />)}
        {view && !busy && !waits && view.reason && <Failure text={visible(view.reason)} />}
        {view && !busy && !waits && !isFinal(view.status) && (
          <p>
            <button type="button" onClick={() => void act("resume")}>
              Continue this turn
            </button>
          </p>
        )}
        <Failure text={error || failure} />
      </div>
      <Composer busy={busy} blocked={waits} onSend={send} onStop={() => void act("interrupt", "cancel")} />
    </main>
  );
}

// findVersions returns the branches that differ in a turn and are equal before it, one for each message that the turn began with. The first
// of them that has the run is the one that is shown.
function findVersions(branches: Branch[], current: Branch | undefined, run: string): Branch[] {
  const at = current?.runs.indexOf(run) ?? -1;
  if (!current || at < 0) return [];
  const found = new Map<string, Branch>();
  for (const b of branches) {
    const other = b.runs[at];
    if (other === undefined || current.runs.slice(0, at).some((r, i) => b.runs[i] !== r)) continue;
    const old = found.get(other);
    if (!old || b === current || (old !== current && b.updated > old.updated)) found.set(other, b);
  }
  return [...found.values()];
}

interface Call {
  id: string;
  name: string;
  args: unknown;
  result?: string;
  media: Sent[]; // pictures and documents of the result
}

interface Turn {
  role: "user" | "assistant";
  run: string;
  first: boolean; // it is what a person wrote to start the run
  text: string;
  media: Sent[]; // pictures and documents that were attached, or that a model made
  reasoning: string;
  calls: Call[];
}

// toTurns returns what was said, in order, with the results of tools at their calls.
function toTurns(entries: Entry[]): Turn[] {
  let turns: Turn[] = [];
  const calls = new Map<string, Call>();
  for (const e of entries) {
    if (e.op === "clear") turns = [];
    const m = e.message;
    if (!m?.role) continue;
    const parts = m.parts ?? [];
    if (m.role === "tool") {
      for (const p of parts) {
        const c = calls.get(p.call_id ?? "");
        if (!c) continue;
        c.media = mediaOf(p.content ?? []);
        c.result = (p.content ?? []).map((x) => x.text ?? (c.media.length ? "" : `(${x.type})`)).join("");
      }
      continue;
    }
    if ((m.role !== "user" || e.by) && m.role !== "assistant") continue;
    const { text, media } = splitMentions(e.said ?? textOf(e, "text"), mediaOf(parts));
    if (e.op === "replace") {
      const last = turns.findLast((t) => t.role === "user");
      if (last && m.role === "user") {
        last.text = text;
        last.media = media;
        continue;
      }
    }
    const run = e.run ?? "";
    const turn: Turn = { role: m.role, run, first: m.role === "user" && !turns.some((t) => t.run === run), text, media, reasoning: textOf(e, "reasoning"), calls: [] };
    for (const p of parts)
      if (p.type === "tool_call") {
        const c: Call = { id: p.id ?? "", name: p.name ?? "", args: p.args, media: [] };
        turn.calls.push(c);
        calls.set(c.id, c);
      }
    turns.push(turn);
  }
  return turns;
}

// TurnView shows what one side has said. With onReplace, a person can send another message in the place of this one.
function TurnView({ turn, agent, versions, onReplace }: { turn: Turn; agent: string; versions: Branch[]; onReplace: ((text: string) => Promise<void>) | undefined }) {
  const [edited, setEdited] = useState<string | null>(null);
  if (turn.role === "user")
    return (
      <article class="said user" aria-label="You">
        <Media list={turn.media} />
        {edited === null || !onReplace ? turn.text && <div class="text">{visible(turn.text)}</div> : <EditMessage text={edited} onText={setEdited} onSend={onReplace} onCancel={() => setEdited(null)} />}
        {turn.first && (
          <footer class="turn">
            {versions.length > 1 && <Versions agent={agent} run={turn.run} list={versions} />}
            {onReplace && edited === null && (
              <button type="button" class="plain" onClick={() => setEdited(turn.text)}>
                Edit
              </button>
            )}
            {turn.run && <a href={runPath(turn.run)}>Every moment</a>}
          </footer>
        )}
      </article>
    );
  return (
    <article class="said assistant" aria-label="The agent">
      {turn.text && <Markdown text={turn.text} />}
      <Media list={turn.media} />
      {turn.reasoning && (
        <details>
          <summary>Reasoning</summary>
          <pre class="text">{visible(turn.reasoning)}</pre>
        </details>
      )}
      {turn.calls.map((c) => (
        <details class="call" key={c.id}>
          <summary>
            <code>{visible(c.name)}</code> <span class="dim">{visible(shorten(c.args))}</span> {c.result === undefined ? <span class="dim">no result yet</span> : null}
          </summary>
          <h3>Arguments</h3>
          <Json value={c.args} />
          {c.result !== undefined && (
            <>
              <h3>Result</h3>
              {(c.result || c.media.length === 0) && <Outcome text={c.result} />}
              <Media list={c.media} />
            </>
          )}
        </details>
      ))}
    </article>
  );
}

// The label of the link between versions that was followed: the one that replaces it gets the focus.
let followedVersion = "";

// Versions leads to the branches that have another message in the place of this one.
function Versions({ agent, run, list }: { agent: string; run: string; list: Branch[] }) {
  const at = list.findIndex((b) => b.runs.includes(run));
  const box = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    if (!followedVersion) return;
    (box.current?.querySelector<HTMLElement>(`[aria-label="${followedVersion}"]`) ?? box.current?.querySelector("a"))?.focus({ preventScroll: true });
    followedVersion = "";
  }, []);
  const link = (b: Branch | undefined, label: string, sign: string) =>
    b ? (
      <a href={chatPath(agent, b.session)} aria-label={label} onClick={() => (followedVersion = label)}>
        {sign}
      </a>
    ) : (
      <span class="dim" aria-hidden="true">
        {sign}
      </span>
    );
  return (
    <span class="versions" ref={box}>
      {link(list[at - 1], "Previous version of this message", "‹")} {at + 1} of {list.length} {link(list[at + 1], "Next version of this message", "›")}
    </span>
  );
}

// EditMessage edits a message that was sent. Enter sends it, Escape leaves it as it was.
function EditMessage({ text, onText, onSend, onCancel }: { text: string; onText(text: string): void; onSend(text: string): Promise<void>; onCancel(): void }) {
  const [sending, setSending] = useState(false);
  const [error, setError] = useState("");
  const send = async () => {
    if (!text.trim() || sending) return;
    setSending(true);
    setError("");
    try {
      await onSend(text);
    } catch (e) {
      setError(words(e));
    }
    setSending(false);
  };
  return (
    <form
      class="edit"
      onSubmit={(e) => {
        e.preventDefault();
        void send();
      }}
    >
      <textarea
        aria-label="Message"
        rows={Math.min(8, Math.max(2, text.split("\n").length))}
        value={text}
        ref={(e) => {
          if (e && !e.dataset["seen"]) {
            e.dataset["seen"] = "yes";
            e.focus();
          }
        }}
        onInput={(e) => onText(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key === "Escape") onCancel();
          if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
            e.preventDefault();
            void send();
          }
        }}
      />
      <p class="dim">The edited message starts another branch. This one stays as it is.</p>
      <Failure text={error} />
      <div class="buttons">
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={!text.trim() || sending}>
          Send on a new branch
        </button>
      </div>
    </form>
  );
}

// shorten returns arguments in one short line.
function shorten(args: unknown): string {
  const text = JSON.stringify(args) ?? "";
  return text.length > 80 ? text.slice(0, 79) + "…" : text;
}

// Outcome shows the result of a tool: lines of a diff with their signs, other text as it is.
function Outcome({ text }: { text: string }) {
  return /^@@ .* @@/m.test(text) ? <DiffText text={text} /> : <pre class="text">{visible(text)}</pre>;
}

// Sent is a file in the form of the API.
interface Sent {
  name: string;
  data: string; // in base64
  type?: string;
}

// The pictures that the page shows. Their types are those that the server has recognized.
const pictures = ["image/png", "image/jpeg", "image/gif", "image/webp"];

// The largest files that the server takes.
const mostBytes = 10 << 20;
const mostFiles = 20;

// readFile returns a file in the form of the API.
async function readFile(f: File): Promise<Sent> {
  const bytes = new Uint8Array(await f.arrayBuffer());
  let binary = "";
  for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192));
  const known = pictures.includes(f.type) || f.type === "application/pdf";
  return { name: f.name, data: btoa(binary), ...(known ? { type: f.type } : {}) };
}

// mediaOf returns the pictures and documents among parts.
function mediaOf(parts: Part[]): Sent[] {
  return parts.filter((p) => (p.type === "image" || p.type === "file") && p.data).map((p) => ({ name: p.name ?? "", data: p.data ?? "", type: p.mime ?? "" }));
}

// splitMentions gives pictures and documents the names that a message says, and returns its text without these lines.
function splitMentions(text: string, media: Sent[]): { text: string; media: Sent[] } {
  const mention = /(?:^|\n\n)File (.+) is attached\.(?=\n\n|$)/g;
  const names = [...text.matchAll(mention)].map((m) => m[1] ?? "");
  if (media.length === 0 || names.length !== media.length) return { text, media };
  return { text: text.replace(mention, "").trim(), media: media.map((m, i) => ({ ...m, name: names[i] ?? m.name })) };
}

// sizeOf returns the size of a file for people.
function sizeOf(bytes: number): string {
  if (bytes < 1 << 10) return `${bytes} bytes`;
  return bytes < 1 << 20 ? `${Math.round(bytes / 1024)} KB` : `${(bytes / (1 << 20)).toFixed(1)} MB`;
}

// Picture shows a picture under an address that only this page can make and read: its policy allows no data in addresses.
function Picture({ data, type, alt }: { data: string; type: string; alt: string }) {
  const [src, setSrc] = useState("");
  useEffect(() => {
    let address = "";
    try {
      address = URL.createObjectURL(new Blob([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], { type }));
    } catch {
      return; // no base64: the line below says what it should be
    }
    setSrc(address);
    return () => URL.revokeObjectURL(address);
  }, [data, type]);
  return src ? <img src={src} alt={alt} /> : null;
}

// Media shows pictures, and the names of documents.
function Media({ list }: { list: Sent[] }) {
  if (list.length === 0) return null;
  return (
    <ul class="media">
      {list.map((m, i) => {
        const name = visible(m.name.split(/[\\/]/).pop() || (m.type === "application/pdf" ? "document" : "picture"));
        const size = sizeOf(Math.floor((m.data.replace(/=+$/, "").length * 3) / 4));
        const shown = pictures.includes(m.type ?? "");
        return (
          <li key={i}>
            <figure>
              {shown && <Picture data={m.data} type={m.type ?? ""} alt={name} />}
              <figcaption>
                {name} · {size}
              </figcaption>
            </figure>
          </li>
        );
      })}
    </ul>
  );
}

// Composer is where a person writes. Enter sends, with Shift it begins a new line. While the agent works, it gets the message with its next request.
function Composer({ busy, blocked, onSend, onStop }: { busy: boolean; blocked: boolean; onSend(text: string, files: Sent[]): Promise<void>; onStop(): void }) {
  const [text, setText] = useState("");
  const [files, setFiles] = useState<File[]>([]);
  const [sending, setSending] = useState(false);
  const [error, setError] = useState("");
  const [dropping, setDropping] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const empty = !text.trim() && files.length === 0;
  const attach = (more: Iterable<File>) => {
    const list = [...files, ...more];
    const large = list.find((f) => f.size > mostBytes);
    setError(large ? `${large.name} has ${sizeOf(large.size)}, and may have ${sizeOf(mostBytes)}.` : list.length > mostFiles ? `A message may have ${mostFiles} files.` : "");
    setFiles(list.filter((f) => f.size <= mostBytes).slice(0, mostFiles));
  };
  const send = async () => {
    if (empty || blocked || sending) return;
    setSending(true);
    setError("");
    try {
      await onSend(text, await Promise.all(files.map(readFile)));
      setText("");
      setFiles([]);
    } catch (e) {
      setError(words(e));
    }
    setSending(false);
  };
  return (
    <form
      class={dropping ? "composer dropping" : "composer"}
      onSubmit={(e) => {
        e.preventDefault();
        void send();
      }}
      onDragOver={(e) => {
        if (!e.dataTransfer?.types.includes("Files")) return;
        e.preventDefault();
        setDropping(true);
      }}
      onDragLeave={(e) => {
        if (!e.currentTarget.contains(e.relatedTarget as Node | null)) setDropping(false);
      }}
      onDrop={(e) => {
        setDropping(false);
        if (!e.dataTransfer?.files.length) return;
        e.preventDefault();
        attach(e.dataTransfer.files);
      }}
    >
      <Failure text={error} />
      {files.length > 0 && (
        <ul class="files" aria-label="Attached files">
          {files.map((f, i) => (
            <li key={i}>
              {visible(f.name)} <span class="dim">{sizeOf(f.size)}</span>{" "}
              <button type="button" class="plain" aria-label={"Remove " + f.name} onClick={() => setFiles(files.filter((g) => g !== f))}>
                ✕
              </button>
            </li>
          ))}
        </ul>
      )}
      <label for="message" class="unseen">
        Message
      </label>
      <textarea
        id="message"
        rows={Math.min(8, Math.max(2, text.split("\n").length))}
        value={text}
        placeholder={blocked ? "Answer the question first" : busy ? "Message for the agent while it works" : "Message"}
        onInput={(e) => setText(e.currentTarget.value)}
        onPaste={(e) => {
          if (!e.clipboardData?.files.length) return;
          e.preventDefault();
          attach(e.clipboardData.files);
        }}
        onKeyDown={(e) => {
          if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
            e.preventDefault();
            void send();
          }
        }}
      />
      <div class="buttons">
        <input
          ref={picker}
          type="file"
          multiple
          class="unseen"
          tabIndex={-1}
          aria-label="Files to attach"
          onChange={(e) => {
            attach(e.currentTarget.files ?? []);
            e.currentTarget.value = "";
          }}
        />
        <button type="button" onClick={() => picker.current?.click()}>
          Attach
        </button>
        {busy && (
          <button type="button" class="danger" onClick={onStop}>
            Stop
          </button>
        )}
        {(!busy || !empty) && (
          <button type="submit" class="primary" disabled={empty || blocked || sending}>
            Send
          </button>
        )}
      </div>
    </form>
  );
}
