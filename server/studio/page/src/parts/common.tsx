import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isAborted, Problem, words } from "../api";
import { age, exact, visible } from "../format";

// Loaded is what a request has given so far. While it is repeated, the old value stays.
export interface Loaded<T> {
  value: T | undefined;
  error: string;
  reload(): void;
}

// retryEvery is how many milliseconds a page waits for a server that does not answer.
export const retryEvery = 2000;

// isLost reports whether an error says that the server does not answer.
export const isLost = (e: unknown) => e instanceof Problem && e.status === 0;

// useLoaded requests a value, again if a key changes, and every so many milliseconds if period is set. A server that does not answer is asked again.
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, keys: unknown[], period = 0): Loaded<T> {
  const [state, setState] = useState<{ value: T | undefined; error: string }>({ value: undefined, error: "" });
  const [round, setRound] = useState(0);
  useEffect(() => setState({ value: undefined, error: "" }), keys);
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const once = async () => {
      let wait = period;
      try {
        const value = await load(stop.signal);
        if (!stop.signal.aborted) setState({ value, error: "" });
      } catch (e) {
        if (!isAborted(e) && !stop.signal.aborted) setState((old) => ({ value: old.value, error: words(e) }));
        if (isLost(e)) wait ||= retryEvery;
      }
      if (wait > 0 && !stop.signal.aborted) timer = window.setTimeout(once, document.hidden ? wait * 4 : wait);
    };
    void once();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [...keys, round]);
  return { ...state, reload: () => setRound((n) => n + 1) };
}

// useSettled returns a value when it has not changed for some milliseconds: what a person only passes is not requested.
export function useSettled<T>(value: T, rest = 80): T {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), rest);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

// useMedia reports whether a media query holds.
export function useMedia(query: string): boolean {
  const [holds, setHolds] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const update = () => setHolds(list.matches);
    update();
    list.addEventListener("change", update);
    return () => list.removeEventListener("change", update);
  }, [query]);
  return holds;
}

// DiffText shows a text whose lines begin with the signs of a diff. Before its first hunk are the names of files.
export function DiffText({ text }: { text: string }) {
  const lines = text.split("\n");
  const first = lines.findIndex((line) => line.startsWith("@@"));
  return (
    <pre class="text diff" tabIndex={0} role="group" aria-label="Change">
      {lines.map((line, i) => (
        <span class={i < first ? "" : line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : ""}>{visible(line) + "\n"}</span>
      ))}
    </pre>
  );
}

// Failure shows the words of an error.
export function Failure({ text }: { text: string }) {
  return text ? (
    <p class="failure" role="alert">
      {text}
    </p>
  ) : null;
}

// Ago shows a time relative to now, and exactly when pointed at.
export function Ago({ time }: { time: string }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 15000);
    return () => clearInterval(timer);
  }, []);
  return (
    <time dateTime={time} title={exact(time)}>
      {age(time)}
    </time>
  );
}

// Dialog asks for something above the page. Escape and a click outside close it.
export function Dialog({ title, onClose, children }: { title: string; onClose(): void; children: ComponentChildren }) {
  return (
    <dialog
      class="dialog"
      aria-label={title}
      ref={(d) => {
        if (d && !d.open) d.showModal();
      }}
      onClose={onClose}
      onClick={(e) => {
        if (e.target === e.currentTarget) onClose();
      }}
    >
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

// Copy copies a text and says so.
export function Copy({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState(false);
  return (
    <button
      type="button"
      onClick={async () => {
        await navigator.clipboard.writeText(text);
        setDone(true);
        setTimeout(() => setDone(false), 1500);
      }}
    >
      {done ? "Copied" : label}
    </button>
  );
}

// A Column is the name of a column of a table, and the class of its head.
export type Column = [name: string, kind?: "number" | "cut"];

// Heads are the heads of the columns of a table.
export function Heads({ columns }: { columns: Column[] }) {
  return (
    <>
      {columns.map(([name, kind]) => (
        <th key={name} scope="col" class={kind}>
          {name}
        </th>
      ))}
    </>
  );
}

// View is the part of a list that is seen, in pixels.
export interface View {
  top: number;
  height: number;
}

// useView returns the part of a list in a box that is seen, and what sets it when the box is scrolled. Until the box is there, its height is the given one.
export function useView(box: { current: HTMLElement | null }, height: number, isThere = true): [View, (v: View) => void] {
  const [view, setView] = useState<View>({ top: 0, height });
  useEffect(() => {
    const b = box.current;
    if (!b) return;
    const update = () => setView({ top: b.scrollTop, height: b.clientHeight });
    update();
    const watcher = new ResizeObserver(update);
    watcher.observe(b);
    return () => watcher.disconnect();
  }, [isThere]);
  return [view, setView];
}
