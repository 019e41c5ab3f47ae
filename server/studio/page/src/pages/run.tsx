import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, isAborted, post, Problem, words } from "../api";
import { cost, count, duration, exact, visible } from "../format";
import { type Connection, follow, isFinal } from "../live";
import { Markdown } from "../markdown";
import { indexAt, type Look, Looks } from "../model";
import { Replies, type Reply } from "../replies";
import { Ago, Copy, Dialog, Failure, useLoaded, useSettled } from "../parts/common";
import { Json } from "../parts/json";
import { ForkDialog } from "../parts/fork";
import { Picture } from "../parts/picture";
import { AnswerForm, Asked, takesAnswers, Wait } from "../parts/question";
import { Status } from "../parts/status";
import { NodeBar, useBreaks } from "../parts/breaks";
import { Timeline } from "../parts/timeline";
import { Waterfall } from "../parts/waterfall";
import { route, runPath } from "../router";
import { share } from "../share";
import { isShortcut } from "../target";
import type { Moment, MomentDetail, Run as RunView, NodeFailure, RunPart, Sent, Spent } from "../types";

const refreshEvery = 250;

// useRun reads a run and follows it: its overview, its moments and the text of replies that arrive now.
function useRun(run: string) {
  const path = "runs/" + encodeURIComponent(run);
  const [view, setView] = useState<RunView>();
  const [moments, setMoments] = useState<Moment[]>([]);
  const [error, setError] = useState("");
  const [connection, setConnection] = useState<Connection>("open");
  const [replies, setReplies] = useState<Reply[]>([]);
  const [round, setRound] = useState(0);
  const [missing, setMissing] = useState(false);
  useEffect(() => {
    const stop = new AbortController();
    let gone = false;
    let unfollow = () => {};
    let all: Moment[] = [];
    let timer = 0;
    let busy = false;
    let again = false;
    const refresh = async () => {
      if (busy) {
        again = true;
        return;
      }
      busy = true;
      try {
        // The server lists the start of an effect only until its outcome is recorded: what follows the first start is read again.
        const started = all.findIndex((m) => m.kind === "intent");
        const settled = started < 0 ? all : all.slice(0, started);
        const after = settled.at(-1)?.record ?? 0;
        const [r, t] = await Promise.all([get<RunView>(path, stop.signal), get<{ items: Moment[] }>(`${path}/timeline?after=${after}`, stop.signal)]);
        const fresh = t.items.filter((m) => m.text !== "" || m.kind === "step" || m.kind === "start");
        if (fresh.length > 0 || all.length === 0) setMoments((all = settled.concat(fresh)));
        setView(r);
        setError("");
      } catch (e) {
        gone = e instanceof Problem && e.status === 404;
        setMissing(gone);
        if (!isAborted(e)) setError(words(e));
      }
      busy = false;
      if (again && !stop.signal.aborted) {
        again = false;
        schedule();
      }
    };
    const schedule = () => {
      if (timer === 0)
        timer = window.setTimeout(() => {
          timer = 0;
          void refresh();
        }, refreshEvery);
    };
    const arriving = new Replies();
    const frames = setInterval(() => {
      const list = arriving.takeChange();
      if (list) setReplies(list);
    }, 100);
    setReplies([]);
    setMoments([]);
    setView(undefined);
    void refresh().then(() => {
      if (stop.signal.aborted || gone) return;
      unfollow = follow(run, all.at(-1)?.record ?? 0, {
        onEvent(e) {
          if (!arriving.add(e).piece) schedule();
        },
        onConnection(c) {
          setConnection(c);
          if (c === "open") arriving.expectAgain();
          if (c !== "lost") schedule();
        },
      });
    });
    return () => {
      stop.abort();
      unfollow();
      clearTimeout(timer);
      clearInterval(frames);
    };
  }, [run, round]);
  return { view, moments, error, missing, connection, replies, reload: () => setRound((n) => n + 1) };
}

export interface Place {
  run: string;
  at: number | null;
  sel: number | null;
  tab: string;
}

interface RunProps extends Place {
  view?: string;
  aside?: string;
  onView?(view: string): void;
  onGo(at: number | null, sel: number | null, tab: string): void;
  onLook?(look: Look, newest: number): void;
}

// Run shows one run at any of its moments. aside is its name on a page that shows another run too and has the keys. onLook gets how it looks at the playhead, and its newest record.
export function Run({ run, at, sel, tab, view: how, aside, onView, onGo, onLook }: RunProps) {
  const { view, moments, error, missing, connection, replies, reload } = useRun(run);
  const shown = useMemo(() => moments.filter((m) => m.text !== ""), [moments]);
  const looks = useMemo(() => new Looks(moments), [moments]);
  const look = useMemo(() => looks.at(at), [looks, at]);
  const here = shown[indexAt(shown, at)];
  const record = sel ?? here?.record ?? null;
  const stops = useBreaks(run, view ? share !== null || isFinal(view.status) : undefined);
  const [node, setNode] = useState({ place: "", kind: "" });
  const [dialog, setDialog] = useState("");
  const [failure, setFailure] = useState("");
  const newest = shown.at(-1)?.record ?? 0;
  useEffect(() => {
    if (moments.length > 0) onLook?.(look, newest);
  }, [look, newest]);
  const move = (to: number) => {
    setNode({ place: "", kind: "" });
    onGo(to >= newest ? null : to, null, tab);
  };
  const act = async (what: string) => {
    setFailure("");
    try {
      await post(`runs/${encodeURIComponent(run)}/${what}`);
      reload();
    } catch (e) {
      setFailure(words(e));
    }
  };
  useLayoutEffect(() => {
    if (aside) return;
    const onKey = (e: KeyboardEvent) => {
      if (!isShortcut(e) || document.querySelector("dialog[open]")) return;
      // Keys may come faster than the page is drawn: the address says where the playhead is.
      const i = indexAt(shown, route.value.page === "run" ? route.value.at : at);
      const to = e.key === "[" ? shown[i - 1] : e.key === "]" ? shown[i + 1] : undefined;
      if (to) move(to.record);
      else if (e.key === "f" && !share) setDialog("fork");
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  const Frame = aside ? "section" : "main";
  const Title = aside ? "h2" : "h1";
  const ofWhich = aside ? " of " + aside : "";
  const mark = aside ? aside + "-" : ""; // two runs on one page have different ids of elements
  const final = view && isFinal(view.status);
  const busy = view && ["running", "queued"].includes(view.status);
  if (missing)
    return (
      <Frame class="narrow" {...(aside ? {} : { id: "main" })}>
        <Title>No such run</Title>
        <p>
          {visible(error)}. <a href="./">Home</a>
        </p>
      </Frame>
    );
  return (
    <Frame class="run" {...(aside ? { "aria-label": "Run " + aside } : { id: "main" })}>
      <header class="bar">
        <Title>
          {aside && <span class="side">{aside}</span>} {share ? (view?.agent ?? "Run") : <a href={"agents/" + encodeURIComponent(view?.agent ?? "")}>{view?.agent ?? "Run"}</a>} <code>{run}</code>
        </Title>
        {view && <Status status={view.status} />}
        {view?.from && !aside && !share && (
          <a href={runPath(run, at, sel, tab, view.from.run)}>Compare with the original</a>
        )}
        {view?.due && <span class="dim">until {exact(view.due)}</span>}
        <span class="connection" role="status">
          {connection === "lost" ? "Connection lost. The page connects again by itself." : ""}
        </span>
        {!share && (
          <span class="actions">
            {busy && (
              <button type="button" onClick={() => void act("pause")}>
                Pause
              </button>
            )}
            {view && !final && !busy && view.status !== "waiting" && (
              <button type="button" class="primary" onClick={() => void act("resume")}>
                Resume
              </button>
            )}
            <button type="button" disabled={!record} onClick={() => setDialog("fork")}>
              Fork here
            </button>
            {view && !final && (
              <button type="button" onClick={() => setDialog("cancel")}>
                Cancel
              </button>
            )}
            <a class="button" href={`api/v1/runs/${encodeURIComponent(run)}/export`} download={run + ".raddle"}>
              Export
            </a>
            <Copy label="Copy command" text={`raddle runs show ${run}${at ? "@" + at : ""}`} />
          </span>
        )}
      </header>
      <Failure text={error || failure} />
      {view && at === null && view.questions?.map((q) => (share && takesAnswers(q) ? <Asked key={q.id} q={q} /> : takesAnswers(q) ? <AnswerForm key={q.id} run={run} q={q} onAnswered={reload} /> : <Wait key={q.id} run={run} q={q} />))}
      <Scrubber moments={shown} at={at} onMove={move} />
      <div class={"panes" + (how === "waterfall" ? " charted" : "")}>
        <section class="panel" aria-label={"Picture" + ofWhich}>
          <Picture path={`runs/${encodeURIComponent(run)}/picture.svg?plain=true`} title={"Graph of the run"} look={look} chosen={node.place || (here?.place ?? "")} breaks={stops.breaks} onNode={({ place, kind, places }) => {
            setNode({ place, kind });
            const isOf = (m: Moment) => m.place !== undefined && places.includes(m.place);
            const last = shown.filter((m) => isOf(m) && (at === null || m.record <= at)).at(-1) ?? shown.find(isOf);
            if (last) onGo(at, last.record, tab);
          }} />
          {view?.picture?.note && <p class="dim">{visible(view.picture.note)}</p>}
          {node.place && !share && <NodeBar node={node} stops={stops} busy={!!busy} final={!!final} onClose={() => setNode({ place: "", kind: "" })} />}
        </section>
        <section class="panel" aria-label={"Timeline" + ofWhich}>
          {onView && (
            <div class="views" role="group" aria-label="How the timeline is shown">
              <button type="button" aria-pressed={how !== "waterfall"} onClick={() => onView("")}>
                Rows
              </button>
              <button type="button" aria-pressed={how === "waterfall"} onClick={() => onView("waterfall")}>
                Waterfall
              </button>
            </div>
          )}
          {how === "waterfall" ? <Waterfall run={run} moments={shown} at={at} onMove={move} /> : <Timeline mark={mark} moments={shown} at={at} sel={sel} onMove={move} />}
          {at === null && <Arriving replies={replies} />}
        </section>
        <section class="panel" aria-label={"Details" + ofWhich}>
          <h2 class="unseen">Details</h2>
          <div class="tabs" role="tablist" aria-label="Details">
            {(["moment", "state", "result"] as const).map((name) => (
              <button key={name} type="button" role="tab" id={mark + "tab-" + name} aria-controls={mark + "details"} aria-selected={tab === name} onClick={() => onGo(at, sel, name)}>
                {{ moment: "Moment", state: "State", result: "Result" }[name]}
              </button>
            ))}
          </div>
          <div id={mark + "details"} role="tabpanel" aria-labelledby={mark + "tab-" + tab} tabIndex={0}>
            {tab === "moment" && record !== null && <Detail run={run} record={record} />}
            {tab === "state" && <State run={run} at={at ?? newest} before={shown[indexAt(shown, at) - 1]?.record ?? 0} />}
            {tab === "result" && view && <Result view={view} />}
          </div>
        </section>
      </div>
      {dialog === "fork" && record !== null && <ForkDialog run={run} at={sel ?? at ?? newest} moments={moments} breaks={stops.breaks} onClose={() => setDialog("")} />}
      {dialog === "cancel" && (
        <Dialog title="Cancel this run?" onClose={() => setDialog("")}>
          <p>The run ends permanently. Its journal stays.</p>
          <div class="buttons">
            <button type="button" onClick={() => setDialog("")}>
              Keep it
            </button>
            <button type="button" class="danger" onClick={() => (setDialog(""), void act("cancel"))}>
              Cancel the run
            </button>
          </div>
        </Dialog>
      )}
    </Frame>
  );
}

// Arriving shows the text of replies that are not complete: all of one reply, or the newest words of each agent of a team.
function Arriving({ replies }: { replies: Reply[] }) {
  if (replies.length === 0) return null;
  if (replies.length === 1)
    return (
      <div class="live" role="log" aria-label="Text that arrives now" tabIndex={0}>
        {visible(replies[0]!.text)}
      </div>
    );
  return (
    <ul class="live" aria-label="Text that arrives now" tabIndex={0}>
      {replies.map((r) => (
        <li key={r.key}>
          <span class="dim">{visible(nameWriter(r.path))}</span> <span class="newest">{visible(endOf(r.text))}</span>
        </li>
      ))}
    </ul>
  );
}

// endOf returns the last words of a text, on one line.
function endOf(text: string): string {
  const end = text.slice(-60).replace(/\s+/g, " ");
  return text.length > 60 ? "…" + end.slice(end.indexOf(" ")) : end;
}

// nameWriter returns the name of the agent or branch that a path leads to.
function nameWriter(path: string): string {
  const last = path.split("/").filter(Boolean).at(-1) ?? "";
  return last.replace(/^agent_(.*)_([0-9a-f]{4})[0-9a-f]*$/, "$1 $2") || "the agent";
}

// Scrubber moves the playhead.
function Scrubber({ moments, at, onMove }: { moments: Moment[]; at: number | null; onMove(record: number): void }) {
  const i = indexAt(moments, at);
  const m = moments[i];
  return (
    <div class="scrubber">
      <button type="button" aria-label="Earlier" disabled={i <= 0} onClick={() => moments[i - 1] && onMove(moments[i - 1]!.record)}>
        ◂
      </button>
      <input
        type="range"
        aria-label="Moment of the run"
        aria-valuetext={m ? `record ${m.record}: ${m.text}` : ""}
        min={0}
        max={Math.max(0, moments.length - 1)}
        value={i}
        onInput={(e) => {
          const to = moments[Number(e.currentTarget.value)];
          if (to) onMove(to.record);
        }}
      />
      <button type="button" aria-label="Later" disabled={i >= moments.length - 1} onClick={() => moments[i + 1] && onMove(moments[i + 1]!.record)}>
        ▸
      </button>
      <output>{m ? `@${m.record}${at === null ? " newest" : ""}` : ""}</output>
    </div>
  );
}

// Detail shows all that a record says.
function Detail({ run, record: wanted }: { run: string; record: number }) {
  const record = useSettled(wanted);
  const { value: d, error } = useLoaded((s) => get<MomentDetail>(`runs/${encodeURIComponent(run)}/records/${record}`, s), [run, record]);
  if (error) return <Failure text={error} />;
  if (!d) return null;
  return (
    <div class="detail">
      <p>
        <strong>{visible(d.text)}</strong>
      </p>
      <p class="dim">
        record {d.record}, <Ago time={d.time} />
        {d.took_ms ? ", took " + duration(d.took_ms) : ""}
        {d.first_ms ? ", first part after " + duration(d.first_ms) : ""}
        {d.retries ? ", tried again " + count(d.retries, "time") + (d.retry_ms ? " after " + duration(d.retry_ms) : "") : ""}
        {d.node ? ", " + d.node : ""}
      </p>
      {d.reply && (
        <>
          {d.reasoning && (
            <details>
              <summary>Reasoning</summary>
              <pre class="text">{visible(d.reasoning)}</pre>
            </details>
          )}
          <h3>Reply</h3>
          {d.reply.text ? <Markdown text={d.reply.text} /> : <p class="dim">The reply has no text.</p>}
          <dl>
            <dt>Model</dt>
            <dd>{visible(d.reply.model ?? "unknown")}</dd>
            {Object.entries(d.reply.usage ?? {}).map(([k, v]) => (
              <>
                <dt>{k} tokens</dt>
                <dd>{v.toLocaleString("en")}</dd>
              </>
            ))}
            <dt>Cost</dt>
            <dd>{d.cost_usd === undefined ? "not known: the model has no price" : cost(d.cost_usd)}</dd>
          </dl>
          <Request key={d.record} run={run} record={d.record} />
        </>
      )}
      {d.output !== undefined && (
        <>
          <h3>Output of the script</h3>
          <pre class="text">{visible(d.output)}</pre>
        </>
      )}
      {d.asks?.map((c) => (
        <>
          <h3>
            Asks for <code>{visible(c.name)}</code>
          </h3>
          <Json value={c.args} />
        </>
      ))}
      {d.call && (
        <>
          <h3>
            Call of <code>{visible(d.call.tool)}</code>
          </h3>
          <Json value={d.call.args} />
          <h3>Outcome: {d.call.status}</h3>
          <pre class="text">{visible(d.call.outcome ?? "")}</pre>
        </>
      )}
      {d.search && (
        <>
          <h3>Search</h3>
          <p>{visible(d.search.query)}</p>
          <Json value={d.search.chunks} />
        </>
      )}
      {d.question && (
        <>
          <h3>Question</h3>
          <pre class="text">{visible(d.question.prompt)}</pre>
        </>
      )}
      {d.answer !== undefined && (
        <>
          <h3>Answer</h3>
          <Json value={d.answer} />
        </>
      )}
      {d.refused && <p>Refused: {visible(d.refused)}</p>}
      {d.reason && (
        <>
          <h3>Reason</h3>
          <pre class="text">{visible(d.reason)}</pre>
        </>
      )}
      {d.keys && d.keys.length > 0 && <p class="dim">writes {d.keys.join(", ")}</p>}
    </div>
  );
}

interface Change {
  key: string;
  a?: unknown;
  b?: unknown;
}

// Request shows what was asked of a model for a reply. A journal has the reply alone: the server computes the rest when a person wants it.
function Request({ run, record }: { run: string; record: number }) {
  const [sent, setSent] = useState<Sent>();
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const load = async () => {
    setBusy(true);
    setError("");
    try {
      setSent(await get<Sent>(`runs/${encodeURIComponent(run)}/records/${record}/request`));
    } catch (e) {
      setError(words(e));
    }
    setBusy(false);
  };
  if (!sent)
    return (
      <>
        <button type="button" disabled={busy} onClick={() => void load()}>
          Show what was asked
        </button>
        <Failure text={error} />
      </>
    );
  return (
    <div class="sent">
      <p class="dim">Computed from the files that the agent had then. A journal has replies, and not what was asked.</p>
      {sent.notes.map((n) => (
        <p key={n} class="finding">
          {visible(n)}
        </p>
      ))}
      {(
        [
          ["Instructions", sent.instructions],
          ["Prompt", sent.prompt],
          ["Tools", sent.tools],
          ["Settings", sent.settings],
        ] as const
      ).map(
        ([name, text]) =>
          text && (
            <section key={name}>
              <h3>{name}</h3>
              <pre class="text">{visible(text)}</pre>
            </section>
          ),
      )}
    </div>
  );
}

// State shows the state at the playhead, with what the newest step changed.
function State({ run, at: wanted, before: wantedBefore }: { run: string; at: number; before: number }) {
  const at = useSettled(wanted);
  const before = useSettled(wantedBefore);
  const path = "runs/" + encodeURIComponent(run);
  const state = useLoaded((s) => get<{ state: Record<string, unknown>; next: string[] }>(`${path}/state?at=${at}`, s), [run, at]);
  const diff = useLoaded((s) => (before > 0 ? get<{ changes: Change[] }>(`${path}/diff?a=${before}&b=${at}`, s) : Promise.resolve({ changes: [] })), [run, at, before]);
  const blame = useLoaded((s) => get<KeyAuthor[]>(`${path}/blame?at=${at}`, s), [run, at]);
  const [json, setJson] = useState(false);
  const old = useRef<Record<string, unknown>>({});
  if (state.value) old.current = state.value.state;
  const changed = new Set(diff.value?.changes.map((c) => c.key) ?? []);
  const authors = new Map(blame.value?.map((b) => [b.key, b]));
  const all = JSON.stringify(old.current, null, 2);
  return (
    <div class="state">
      <Failure text={state.error} />
      <div class="bar">
        {state.value && state.value.next.length > 0 && <span class="dim">Next: {state.value.next.join(", ")}</span>}
        <button type="button" aria-pressed={json} onClick={() => setJson(!json)}>
          JSON
        </button>
        <Copy label="Copy" text={all} />
      </div>
      {json && <pre class="text">{visible(all)}</pre>}
      {!json && (
        <ul class="keys">
          {Object.entries(old.current).map(([k, v]) => (
            <li key={k} class={changed.has(k) ? "changed" : ""}>
              <span class="json-key">{visible(k)}</span>
              {changed.has(k) && <span class="badge">changed</span>} <Json value={v} depth={1} />
              <Writer author={authors.get(k)} />
            </li>
          ))}
        </ul>
      )}
      {state.value && Object.keys(state.value.state).length === 0 && <p class="empty">The state is empty.</p>}
    </div>
  );
}

interface KeyAuthor {
  key: string;
  run: string;
  at: number;
  kind: string;
  nodes?: string[];
}

// Writer leads to the moment at which a key got its value.
function Writer({ author }: { author: KeyAuthor | undefined }) {
  if (!author) return null;
  return (
    <small class="author">
      written by {visible(author.nodes?.join(", ") ?? author.kind)} at{" "}
      {share && author.run !== share.run ? `@${author.at} of run ${author.run}` : <a href={runPath(author.run, author.at, null, "state")}>@{author.at}</a>}
    </small>
  );
}

// Parts shows the parts of a run that worked, with what has failed.
function Parts({ parts }: { parts: RunPart[] }) {
  return (
    <ul class="parts">
      {parts.map((p) => (
        <li key={p.path}>
          {p.agent ? nameWriter(p.path) : visible(p.path)} <Status status={p.status} />{" "}
          <span class="dim">{[duration(p.seconds * 1000), p.tool_calls > 0 ? count(p.tool_calls, "tool call") : "", p.failed_tool_calls ? `${p.failed_tool_calls} failed` : "", visible(p.purpose ?? "")].filter(Boolean).join(", ")}</span>
          {p.error && <div class="error">{visible(p.error)}</div>}
          {!!p.children?.length && <Parts parts={p.children} />}
        </li>
      ))}
    </ul>
  );
}

// Failures shows what has failed although the run continued, and links to where it did.
function Failures({ run, list }: { run: string; list: NodeFailure[] }) {
  return (
    <>
      <h3>Failed, and continued</h3>
      <ul class="parts">
        {list.map((f) => (
          <li key={`${f.at} ${f.node}`}>
            <a href={runPath(run, null, f.at, "moment")}>{visible(f.node)}</a>
            <div class="error">{visible(f.error)}</div>
          </li>
        ))}
      </ul>
    </>
  );
}

// Times shows where the time of the run went, and links to what took longest.
function Times({ run, spent }: { run: string; spent: Spent }) {
  const sums: [string, number][] = [
    ["Models", spent.model_seconds],
    ["Tools", spent.tool_seconds],
    ["Scripts", spent.script_seconds],
    ["Other", spent.other_seconds],
    ["Between attempts", spent.retry_seconds],
    ["Open questions", spent.answer_seconds],
  ];
  const longest = spent.slowest?.[0]?.seconds ?? 0;
  return (
    <>
      <h3>Time</h3>
      <dl>
        {sums
          .filter(([, seconds]) => seconds >= 0.05)
          .map(([name, seconds]) => (
            <>
              <dt>{name}</dt>
              <dd>{duration(seconds * 1000)}</dd>
            </>
          ))}
      </dl>
      {spent.untimed > 0 && <p class="dim">An earlier version has recorded {count(spent.untimed, "effect")} without the time.</p>}
      {longest === 0 && spent.untimed === 0 && <p class="empty">Nothing took long.</p>}
      {longest > 0 && (
        <ul class="slowest" aria-label="What took longest">
          {spent.slowest?.map((s) => (
            <li key={s.record}>
              <a href={runPath(run, null, s.record, "moment")}>{visible([s.node, s.name].filter(Boolean).join(": ") || s.what)}</a>{" "}
              <span class="took">{duration(s.seconds * 1000)}</span>
              {s.retries ? <span class="dim"> tried again {count(s.retries, "time")}{s.retry_seconds ? " after " + duration(s.retry_seconds * 1000) : ""}</span> : ""}
              <span class="share" aria-hidden="true" ref={(e) => e?.style.setProperty("width", (100 * s.seconds) / longest + "%")} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

// Result shows how the run ended and what it used.
function Result({ view }: { view: RunView }) {
  return (
    <div class="detail">
      {view.start?.prompt && (
        <>
          <h3>Prompt</h3>
          <Markdown text={view.start.prompt} />
        </>
      )}
      {Object.entries(view.start?.templates ?? {}).map(([node, text]) => (
        <>
          <h3>Prompt template of {visible(node)}, changed in this run</h3>
          <pre class="text">{visible(text)}</pre>
        </>
      ))}
      <h3>Output</h3>
      {view.output ? <Markdown text={view.output} /> : <p class="empty">There is no output yet.</p>}
      {view.reason && <pre class="text">{visible(view.reason)}</pre>}
      {view.warnings?.map((w) => (
        <p class="finding finding-warning">{visible(w)}</p>
      ))}
      {!!view.failures?.length && <Failures run={view.run} list={view.failures} />}
      {!!view.tree.children?.length && (
        <>
          <h3>Parts</h3>
          <Parts parts={view.tree.children} />
        </>
      )}
      <Times run={view.run} spent={view.spent} />
      <h3>Used</h3>
      <dl>
        <dt>Model calls</dt>
        <dd>{view.usage.calls}</dd>
        <dt>Tokens</dt>
        <dd>
          {count(view.usage.input_tokens, "token")} in, {count(view.usage.output_tokens, "token")} out
        </dd>
        <dt>Cost</dt>
        <dd>{cost(view.usage.cost_usd)}</dd>
        <dt>Active</dt>
        <dd>{duration(view.active_seconds * 1000)}</dd>
        <dt>Models</dt>
        <dd>{view.usage.models?.map(visible).join(", ") || "none"}</dd>
      </dl>
    </div>
  );
}
