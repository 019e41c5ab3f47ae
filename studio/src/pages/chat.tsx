import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, isAborted, post, Problem, words } from "../api";
import { visible } from "../format";
import { type Connection, follow, isFinal } from "../live";
import { Markdown } from "../markdown";
import { Ago, Failure, useLoaded } from "../parts/common";
import { Json } from "../parts/json";
import { AnswerForm } from "../parts/question";
import { Status } from "../parts/status";
import { go, runPath } from "../router";
import type { Conversation, Entry, Page, RunInfo, Session } from "../types";

const refreshEvery = 250;
const lookEvery = 3000;

// chatPath returns the address of a conversation.
export function chatPath(agent: string, session?: string): string {
  return `chat/${encodeURIComponent(agent)}${session ? "/" + encodeURIComponent(session) : ""}`;
}

// useConversation reads what was said in a session, and follows its newest run.
function useConversation(agent: string, session: string) {
  const [talk, setTalk] = useState<Conversation | null>(null);
  const [view, setView] = useState<RunInfo | null>(null);
  const [error, setError] = useState("");
  const [text, setText] = useState("");
  const [connection, setConnection] = useState<Connection>("open");
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (!session) return;
    const stop = new AbortController();
    let unfollow = () => {};
    let timer = 0;
    let looks = 0;
    let pending = "";
    let known = "";
    const load = async (): Promise<string> => {
      try {
        const c = await get<Conversation>(`sessions/${encodeURIComponent(agent)}/${encodeURIComponent(session)}`, stop.signal);
        const r = await get<RunInfo>("runs/" + encodeURIComponent(c.run), stop.signal);
        setTalk(c);
        setView(r);
        setError("");
        known = `${r.run} ${r.updated}`;
        return c.run;
      } catch (e) {
        if (!isAborted(e) && !(e instanceof Problem && e.code === "unknown-session")) setError(words(e));
        return "";
      }
    };
    const schedule = () => {
      if (timer === 0)
        timer = window.setTimeout(() => {
          timer = 0;
          void load();
        }, refreshEvery);
    };
    // look follows the conversation again if a turn was added elsewhere: in a terminal or in another page.
    const look = async () => {
      const c = await get<Conversation>(`sessions/${encodeURIComponent(agent)}/${encodeURIComponent(session)}`, stop.signal).catch(() => null);
      if (c && `${c.run} ${c.updated}` !== known) setRound((n) => n + 1);
    };
    const frames = setInterval(() => {
      if (pending === "") return;
      const more = pending;
      pending = "";
      setText((old) => old + more);
    }, 100);
    void load().then(async (run) => {
      if (!run || stop.signal.aborted) return;
      const newest = await get<Page<{ seq: number }>>(`runs/${encodeURIComponent(run)}/history?limit=1`, stop.signal).catch(() => ({ items: [] as { seq: number }[] }));
      if (stop.signal.aborted) return;
      unfollow = follow(run, newest.items[0]?.seq ?? 0, {
        onEvent(e) {
          if (e.kind === "emitted" && e.data["type"] === "text") {
            pending += String(e.data["text"] ?? "");
            return;
          }
          if (e.kind !== "emitted" || e.data["type"] === "replied") {
            pending = "";
            void load().then(() => setText(""));
          }
        },
        onConnection(c) {
          setConnection(c);
          if (c !== "lost") schedule();
          if (c === "ended" && looks === 0) looks = window.setInterval(() => void look(), lookEvery);
        },
      });
    });
    return () => {
      stop.abort();
      unfollow();
      clearTimeout(timer);
      clearInterval(frames);
      clearInterval(looks);
    };
  }, [agent, session, round]);
  return { talk, view, error, text, connection, reload: () => setRound((n) => n + 1) };
}

// Chat shows the conversations with an agent, and one of them.
export function Chat({ agent, session }: { agent: string; session: string }) {
  return (
    <div class="chat">
      <Sessions agent={agent} current={session} />
      <Talk key={session} agent={agent} session={session} />
    </div>
  );
}

// Sessions lists the conversations with an agent, newest first.
function Sessions({ agent, current }: { agent: string; current: string }) {
  const sessions = useLoaded((s) => get<Page<Session>>("sessions?limit=200&agent=" + encodeURIComponent(agent), s), [agent], 3000);
  const [search, setSearch] = useState("");
  useEffect(() => sessions.reload(), [current]); // it may be new
  const list = (sessions.value?.items ?? []).filter((s) => s.session.toLowerCase().includes(search.toLowerCase())).sort((a, b) => b.updated.localeCompare(a.updated));
  return (
    <aside class="sessions" aria-label="Conversations">
      <h2>
        <a href={"agents/" + encodeURIComponent(agent)}>{visible(agent)}</a>
      </h2>
      <a class="button" href={chatPath(agent)} aria-current={current === "" ? "page" : undefined}>
        New conversation
      </a>
      <input type="search" placeholder="Search" aria-label="Search conversations" value={search} onInput={(e) => setSearch(e.currentTarget.value)} />
      <Failure text={sessions.error} />
      <ul>
        {list.map((s) => (
          <li key={s.session}>
            <a href={chatPath(agent, s.session)} aria-current={s.session === current ? "page" : undefined}>
              <span class="name">{visible(s.session)}</span>
              <span class="dim">
                {["running", "waiting", "failed"].includes(s.status) ? s.status + ", " : ""}
                <Ago time={s.updated} />
              </span>
            </a>
          </li>
        ))}
      </ul>
      {sessions.value && list.length === 0 && <p class="dim">{search ? "No conversation has this name." : "There is no conversation yet."}</p>}
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

// Talk is one conversation.
function Talk({ agent, session }: { agent: string; session: string }) {
  const { talk, view, error, text, connection, reload } = useConversation(agent, session);
  const [failure, setFailure] = useState("");
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const busy = !!view && ["running", "queued"].includes(view.status);
  const waits = !!view && view.status === "waiting";
  const turns = useMemo(() => toTurns(talk?.messages ?? []), [talk]);
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
  const send = async (prompt: string, files: File[]) => {
    const name = session || nameSession(prompt);
    // A turn that failed or was stopped has not ended: it ends before the next one starts.
    if (view && !busy && !isFinal(view.status)) await post(`runs/${encodeURIComponent(view.run)}/cancel`);
    await post("runs", { agent, session: name, prompt, ...(files.length ? { files: await Promise.all(files.map(readFile)) } : {}) });
    atEnd.current = true;
    if (name === session) reload();
    else go(chatPath(agent, name));
  };
  return (
    <main id="main" class="talk">
      <header class="bar">
        <h1>{session ? visible(session) : "New conversation"}</h1>
        {view && <Status status={view.status} />}
        <span class="connection" role="status">
          {connection === "lost" ? "Connection lost. The page connects again by itself." : ""}
        </span>
        {view && (
          <span class="actions">
            <a href={runPath(view.run)}>Every moment of this turn</a>
          </span>
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
        {turns.length === 0 && !text && <p class="empty">Write a message. raddle saves each turn: a conversation continues here or with raddle chat.</p>}
        {turns.map((t, i) => (
          <TurnView key={i} turn={t} />
        ))}
        {text && busy && (
          <article class="said assistant" aria-busy="true">
            <Markdown text={text} />
          </article>
        )}
        {busy && !text && <p class="dim working">Working…</p>}
        {view && waits && view.questions.map((q) => <AnswerForm key={q.id} run={view.run} q={q} onAnswered={reload} />)}
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

interface Call {
  id: string;
  name: string;
  args: unknown;
  result?: string;
}

interface Turn {
  role: "user" | "assistant";
  text: string;
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
    const textOf = (type: string) => parts.filter((p) => p.type === type).map((p) => p.text ?? "").join("");
    if (m.role === "tool") {
      for (const p of parts) {
        const c = calls.get(p.call_id ?? "");
        if (c) c.result = (p.content ?? []).map((x) => x.text ?? `(${x.type})`).join("");
      }
      continue;
    }
    if (m.role !== "user" && m.role !== "assistant") continue;
    const text = e.said ?? textOf("text");
    if (e.op === "replace") {
      const last = turns.findLast((t) => t.role === "user");
      if (last && m.role === "user") {
        last.text = text;
        continue;
      }
    }
    const turn: Turn = { role: m.role, text, reasoning: textOf("reasoning"), calls: [] };
    for (const p of parts)
      if (p.type === "tool_call") {
        const c: Call = { id: p.id ?? "", name: p.name ?? "", args: p.args };
        turn.calls.push(c);
        calls.set(c.id, c);
      }
    turns.push(turn);
  }
  return turns;
}

// TurnView shows what one side has said.
function TurnView({ turn }: { turn: Turn }) {
  return (
    <article class={"said " + turn.role} aria-label={turn.role === "user" ? "You" : "The agent"}>
      {turn.role === "user" ? <div class="text">{visible(turn.text)}</div> : turn.text && <Markdown text={turn.text} />}
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
              <Outcome text={c.result} />
            </>
          )}
        </details>
      ))}
    </article>
  );
}

// shorten returns arguments in one short line.
function shorten(args: unknown): string {
  const text = JSON.stringify(args) ?? "";
  return text.length > 80 ? text.slice(0, 79) + "…" : text;
}

// Outcome shows the result of a tool: lines of a diff with their signs, other text as it is.
function Outcome({ text }: { text: string }) {
  const isDiff = /^@@ .* @@/m.test(text);
  if (!isDiff) return <pre class="text">{visible(text)}</pre>;
  return (
    <pre class="text diff">
      {text.split("\n").map((line) => (
        <span class={line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : ""}>{visible(line) + "\n"}</span>
      ))}
    </pre>
  );
}

// readFile returns a file in the form of the API.
async function readFile(f: File): Promise<{ name: string; data: string }> {
  const bytes = new Uint8Array(await f.arrayBuffer());
  let binary = "";
  for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return { name: f.name, data: btoa(binary) };
}

// Composer is where a person writes. Enter sends, with Shift it begins a new line.
function Composer({ busy, blocked, onSend, onStop }: { busy: boolean; blocked: boolean; onSend(text: string, files: File[]): Promise<void>; onStop(): void }) {
  const [text, setText] = useState("");
  const [files, setFiles] = useState<File[]>([]);
  const [sending, setSending] = useState(false);
  const [error, setError] = useState("");
  const picker = useRef<HTMLInputElement>(null);
  const send = async () => {
    if (!text.trim() || busy || blocked || sending) return;
    setSending(true);
    setError("");
    try {
      await onSend(text, files);
      setText("");
      setFiles([]);
    } catch (e) {
      setError(words(e));
    }
    setSending(false);
  };
  return (
    <form
      class="composer"
      onSubmit={(e) => {
        e.preventDefault();
        void send();
      }}
    >
      <Failure text={error} />
      {files.length > 0 && (
        <ul class="files" aria-label="Attached files">
          {files.map((f) => (
            <li key={f.name}>
              {visible(f.name)}{" "}
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
        placeholder={blocked ? "Answer the question first" : "Message"}
        onInput={(e) => setText(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
            e.preventDefault();
            void send();
          }
        }}
      />
      <div class="buttons">
        <input ref={picker} type="file" multiple class="unseen" tabIndex={-1} aria-label="Files to attach" onChange={(e) => setFiles([...files, ...(e.currentTarget.files ?? [])])} />
        <button type="button" onClick={() => picker.current?.click()}>
          Attach
        </button>
        {busy ? (
          <button type="button" class="danger" onClick={onStop}>
            Stop
          </button>
        ) : (
          <button type="submit" class="primary" disabled={!text.trim() || blocked || sending}>
            Send
          </button>
        )}
      </div>
    </form>
  );
}
