import { signal } from "@preact/signals";
import { Problem } from "../api";
import { visible } from "../format";
import { runPath } from "../router";
import type { Given } from "../types";
import { Ago } from "./common";

// Late is an answer that did not count, because the question had one already.
interface Late {
  run: string;
  value: unknown;
  given: Given;
}

// list is outside of the form that gave the answer: the form goes with the question, and a person must have read that their answer did not count.
const list = signal<Late[]>([]);

// noteLate keeps an answer that came too late until it was read. It reports whether the error says that.
export function noteLate(run: string, value: unknown, e: unknown): boolean {
  if (!(e instanceof Problem) || !e.answer) return false;
  list.value = [...list.value, { run, value, given: e.answer }];
  return true;
}

const show = (v: unknown) => (typeof v === "string" ? `“${visible(v)}”` : JSON.stringify(v));

// LateAnswers shows the answers that did not count, until each was read.
export function LateAnswers() {
  if (list.value.length === 0) return null;
  return (
    <div class="late" role="alert">
      {list.value.map((l) => (
        <div class="card" key={l.run + l.given.id + l.given.at}>
          <p>
            Your answer {show(l.value)} to <b>{visible(l.given.id)}</b> of run <a href={runPath(l.run)}>{l.run}</a> did not count: {l.given.by ? visible(l.given.by) : "someone"}{" "}
            {l.given.refused ? `refused the question (${visible(l.given.refused)})` : <>answered {show(l.given.answer)}</>} <Ago time={l.given.at} />.
          </p>
          <button type="button" onClick={() => (list.value = list.value.filter((o) => o !== l))}>
            I have read this
          </button>
        </div>
      ))}
    </div>
  );
}
