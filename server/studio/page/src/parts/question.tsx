import { useLayoutEffect, useState } from "preact/hooks";
import { post, words } from "../api";
import { exact, visible } from "../format";
import { isShortcut } from "../target";
import type { Question } from "../types";
import { DiffText, Failure } from "./common";
import { noteLate } from "./late";
import { useIntent } from "./intent";

// toValue returns an answer that was typed in the type that the question wants.
function toValue(q: Question, text: string): unknown {
  switch (q.type) {
    case "number":
    case "integer":
      return Number(text);
    case "boolean":
      return text === "true" || text === "yes";
    case "array":
    case "object":
      return JSON.parse(text) as unknown;
    default:
      return text;
  }
}

// splitPrompt returns the words of a question, and the change of a file that follows them.
function splitPrompt(q: Question): [string, string] {
  const at = q.data?.detail?.diff ?? 0; // in bytes
  const bytes = new TextEncoder().encode(q.prompt);
  if (q.kind !== "permission" || at <= 0 || at >= bytes.length) return [q.prompt, ""];
  const text = new TextDecoder();
  return [text.decode(bytes.slice(0, at)), text.decode(bytes.slice(at))];
}

// shortenPrompt returns the words of a question without what Permission shows: the arguments of the call and its parts.
function shortenPrompt(q: Question, prompt: string): string {
  if (q.kind !== "permission" || !q.data?.tool) return prompt;
  const [first = "", ...rest] = prompt.trim().split("\n");
  const short = first.replace(/^(May \S+ be called) with \{.*\}\?$/, "$1?");
  return short === first ? prompt : [short, ...(q.data.detail?.parts?.length ? [] : rest)].join("\n");
}

// Permission shows what a call would do: change is that of a file.
function Permission({ q, change }: { q: Question; change: string }) {
  const d = q.data?.detail;
  if (!q.data?.tool) return null;
  return (
    <div class="permission">
      <dl>
        <dt>Tool</dt>
        <dd>
          <code>{visible(q.data.tool)}</code>
        </dd>
        {d?.dir && (
          <>
            <dt>In</dt>
            <dd>
              <code>{visible(d.dir)}</code>
            </dd>
          </>
        )}
        {d?.parts?.map((p) => (
          <>
            <dt>Needs</dt>
            <dd>
              <code>{visible(p.text)}</code> {visible(p.why)} {p.detail && <small>{visible(p.detail)}</small>}
            </dd>
          </>
        ))}
        {d?.risks?.map((r) => (
          <>
            <dt>Risk</dt>
            <dd class="risk">It {visible(r)}.</dd>
          </>
        ))}
      </dl>
      {d?.command ? <pre class="text">{visible(d.command)}</pre> : change ? <DiffText text={change.replace(/^\n+|\n+$/g, "")} /> : null}
      <details open={!d?.command && !change}>
        <summary>Arguments</summary>
        <pre class="text">{visible(JSON.stringify(q.data.args, null, 2))}</pre>
      </details>
    </div>
  );
}

// Hint says why a key or a button did nothing.
function Hint({ text }: { text: string }) {
  return (
    <p class="dim" role="status">
      {text}
    </p>
  );
}

// PermissionForm asks a person about a call that is not part of a run.
export function PermissionForm({ q, busy, onAllow, onRefuse }: { q: Question; busy: boolean; onAllow(): void; onRefuse(): void }) {
  const [prompt, change] = splitPrompt(q);
  const intent = useIntent(true);
  return (
    <form ref={intent.form} class="question" aria-label="Permission" data-ready={intent.ready} onSubmit={(e) => e.preventDefault()}>
      <p class="prompt">{visible(prompt.trim())}</p>
      <Permission q={q} change={change} />
      <div class="options">
        <button type="button" class="primary" disabled={busy} onClick={(e) => intent.isMeant(e) && onAllow()}>
          Call it once
        </button>
        <button type="button" disabled={busy} onClick={onRefuse}>
          Do not call it
        </button>
      </div>
      <Hint text={intent.hint} />
    </form>
  );
}

function AnswerInput({ id, q, text, onText }: { id: string; q: Question; text: string; onText(text: string): void }) {
  if (q.type === "number" || q.type === "integer") return <input id={id} type="number" step="any" value={text} onInput={(e) => onText(e.currentTarget.value)} />;
  return <input id={id} type="text" value={text} onInput={(e) => onText(e.currentTarget.value)} autocomplete="off" />;
}

// takesAnswers reports whether a person answers a question, and not an event or another run.
export const takesAnswers = (q: Question) => q.kind !== "event" && q.kind !== "remote";

// Wait shows what a run waits for that no person answers.
export function Wait({ run, q }: { run: string; q: Question }) {
  const event = q.kind === "event" ? (q.data as { name?: string } | undefined)?.name : undefined;
  return (
    <section class="question" aria-label={"Wait " + q.id}>
      <p>
        <strong>{visible(q.id)}</strong> {visible(q.prompt)}
        {q.due && <> until {exact(q.due)}</>}
      </p>
      {event !== undefined && (
        <p>
          To send it: <code>{visible(`raddle events send ${/^[\w.:-]+$/.test(event) ? event : JSON.stringify(event)} JSON --run ${run}`)}</code>
        </p>
      )}
    </section>
  );
}

// Asked shows a question in a file, where it takes no answer.
export function Asked({ q }: { q: Question }) {
  const [prompt, change] = splitPrompt(q);
  return (
    <section class="question" aria-label={"Question " + q.id}>
      <p class="prompt">{visible(shortenPrompt(q, prompt).trim())}</p>
      {q.kind === "permission" && <Permission q={q} change={change} />}
      {!!q.options?.length && <p>It offers: {visible(q.options.join(", "))}.</p>}
      <p class="dim">When this file was written, the run waited for an answer.</p>
    </section>
  );
}

// AnswerForm asks a person a question of a run. Exactly one answer is recorded: the server refuses a second one, and its words are shown. What
// allows something is answered only by a person who had a moment to see it. keys: the keys 1 to 9 choose an option.
export function AnswerForm({ run, q, onAnswered, keys }: { run: string; q: Question; onAnswered(): void; keys?: boolean }) {
  const [text, setText] = useState(q.default ?? "");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const send = async (value: unknown) => {
    setBusy(true);
    setError("");
    try {
      await post(`runs/${encodeURIComponent(run)}/answers`, { answers: [{ id: q.id, value }] });
      onAnswered();
    } catch (e) {
      if (noteLate(run, value, e)) onAnswered();
      else setError(words(e));
    } finally {
      setBusy(false);
    }
  };
  const permission = q.kind === "permission";
  const intent = useIntent(permission || q.kind === "trust");
  const options = permission ? ["once", "no"] : (q.options ?? []);
  const free = !permission && (options.length === 0 || q.free);
  const id = `answer-${run}-${q.id}`;
  const [prompt, change] = splitPrompt(q);
  useLayoutEffect(() => {
    if (!keys) return;
    const onKey = (e: KeyboardEvent) => {
      if (!isShortcut(e) || e.repeat || busy || document.querySelector("dialog[open]")) return;
      const option = /^[1-9]$/.test(e.key) ? options[Number(e.key) - 1] : undefined;
      if (option === undefined) return;
      e.preventDefault();
      if (intent.isMeant(e)) void send(option);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  return (
    <form
      ref={intent.form}
      class="question"
      aria-label={"Question " + q.id}
      data-ready={intent.ready}
      onSubmit={(e) => {
        e.preventDefault();
        if (!intent.isMeant(e)) return;
        try {
          void send(toValue(q, text));
        } catch {
          setError("This must be JSON.");
        }
      }}
    >
      <p class="prompt">{visible(shortenPrompt(q, prompt).trim())}</p>
      {permission && <Permission q={q} change={change} />}
      {options.length > 0 && (
        <div class="options">
          {options.map((o, i) => (
            <button type="button" disabled={busy} class={i === 0 ? "primary" : ""} data-option={i + 1} onClick={(e) => intent.isMeant(e) && void send(o)}>
              {keys && i < 9 && <kbd>{i + 1}</kbd>} {visible(o)}
            </button>
          ))}
        </div>
      )}
      {free && (
        <div class="free">
          <label for={id}>{options.length > 0 ? "Or another answer" : "Your answer"}</label>
          {q.type === "array" || q.type === "object" || (q.default ?? "").includes("\n") ? (
            <textarea id={id} rows={4} value={text} onInput={(e) => setText(e.currentTarget.value)} />
          ) : (
            <AnswerInput id={id} q={q} text={text} onText={setText} />
          )}
          <button type="submit" class={options.length === 0 ? "primary" : ""} disabled={busy}>
            Answer
          </button>
        </div>
      )}
      <Hint text={intent.hint} />
      <Failure text={error} />
    </form>
  );
}
