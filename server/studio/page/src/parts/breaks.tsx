import { useEffect, useState } from "preact/hooks";
import { get, isAborted, post, words } from "../api";
import { visible } from "../format";
import type { Break, Stop } from "../types";
import { Failure, isLost, retryEvery } from "./common";

// Stops are the places at which a run stops, and what changes them.
export interface Stops {
  breaks: Break[];
  error: string;
  toggle(b: Break): void;
}

const isSame = (a: Break, b: Break) => a.node === b.node && !a.after === !b.after;

// useBreaks reads and sets the breaks of a run. Those of a run that has ended are only for its forks, and the page keeps them. final is undefined until it
// is known.
export function useBreaks(run: string, final: boolean | undefined): Stops {
  const path = `runs/${encodeURIComponent(run)}/breaks`;
  const [breaks, setBreaks] = useState<Break[]>([]);
  const [error, setError] = useState("");
  const show = (list: Stop[]) => setBreaks(list.map((b) => ({ node: b.place, ...(b.after ? { after: true } : {}) })));
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (final !== false) return;
    const stop = new AbortController();
    let timer = 0;
    get<{ breaks: Stop[] }>(path, stop.signal)
      .then((r) => {
        show(r.breaks);
        setError("");
      })
      .catch((e: unknown) => {
        if (isAborted(e) || stop.signal.aborted) return;
        setError(words(e));
        if (isLost(e)) timer = window.setTimeout(() => setRound((n) => n + 1), retryEvery);
      });
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [path, final, round]);
  const toggle = async (b: Break) => {
    const rest = breaks.filter((old) => !isSame(old, b));
    const wanted = rest.length < breaks.length ? rest : [...breaks, b];
    setError("");
    if (final !== false) {
      setBreaks(wanted);
      return;
    }
    try {
      show((await post<{ breaks: Stop[] }>(path, { breaks: wanted })).breaks);
    } catch (e) {
      setError(words(e));
    }
  };
  return { breaks, error, toggle: (b) => void toggle(b) };
}

const noStops = new Set(["model", "tools", "server", "group"]); // in the picture of a conversation, and several nodes that are alike

// NodeBar sets the breaks of a node of the picture.
export function NodeBar({ node, stops, busy, final, onClose }: { node: { place: string; kind: string }; stops: Stops; busy: boolean; final: boolean; onClose(): void }) {
  const can = !noStops.has(node.kind);
  const when = final ? "The next fork stops there." : busy ? "From the next time that the run continues." : "When the run continues.";
  return (
    <div class="node-bar" role="group" aria-label={"Node " + node.place}>
      <strong>{visible(node.place)}</strong>
      {[false, true].map((after) => (
        <button
          key={String(after)}
          type="button"
          disabled={!can}
          aria-pressed={stops.breaks.some((b) => b.node === node.place && !b.after === !after)}
          onClick={() => stops.toggle(after ? { node: node.place, after } : { node: node.place })}
        >
          {after ? "Stop after" : "Stop before"}
        </button>
      ))}
      <button type="button" class="plain" aria-label="Close" onClick={onClose}>
        ✕
      </button>
      <small>{can ? when : node.kind === "group" ? "Unfold them to let the run stop at one." : "A run stops only at nodes of a graph."}</small>
      <Failure text={stops.error} />
    </div>
  );
}
