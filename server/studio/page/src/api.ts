// Requests to the server that the page came from. Nothing else is ever requested. A page in a file has the answers, and requests nothing.

import { findAnswer, share } from "./share";
import type { Given } from "./types";

// A Problem is an error of the API, with its own words.
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly answer?: Given, // that a question has already
  ) {
    super(detail);
  }
}

const base = new URL(document.baseURI);

// address returns the address of a path of the server, without the slash in front.
export function address(path: string): string {
  return new URL(path, base).href;
}

async function readProblem(r: Response): Promise<Problem> {
  const text = await r.text();
  try {
    const p = JSON.parse(text) as { detail?: string; title?: string; code?: string; answer?: Given };
    return new Problem(r.status, p.code ?? "", p.detail ?? p.title ?? r.statusText, p.answer);
  } catch {
    return new Problem(r.status, "", text.trim() || r.statusText);
  }
}

async function send(method: string, path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  if (share) throw new Problem(405, "shared", "This file shows a run. It changes nothing.");
  const init: RequestInit = { method, credentials: "same-origin", headers: {} };
  if (body !== undefined) {
    init.headers = { "Content-Type": "application/json" };
    init.body = JSON.stringify(body);
  }
  if (signal) init.signal = signal;
  let r: Response;
  try {
    r = await fetch(address(path), init);
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new Problem(0, "unreachable", "The server does not answer.");
  }
  if (!r.ok) throw await readProblem(r);
  return r;
}

// takeAnswer returns what a file has in the place of an answer.
function takeAnswer<T>(path: string): T {
  const { status, value } = findAnswer(path);
  if (status === 200) return value as T;
  const p = value as { detail?: string; code?: string };
  throw new Problem(status, p.code ?? "", p.detail ?? "");
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  if (share) return takeAnswer<T>(path);
  return (await send("GET", "api/v1/" + path, undefined, signal)).json() as Promise<T>;
}

export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  if (share) return takeAnswer<string>(path);
  return (await send("GET", "api/v1/" + path, undefined, signal)).text();
}

export async function post<T>(path: string, body: unknown = {}): Promise<T> {
  const r = await send("POST", "api/v1/" + path, body);
  return (r.status === 204 ? undefined : await r.json()) as T;
}

export async function remove(path: string): Promise<void> {
  await send("DELETE", "api/v1/" + path, undefined);
}

// isAborted reports whether an error only says that the request is no longer wanted.
export function isAborted(e: unknown): boolean {
  return e instanceof DOMException && e.name === "AbortError";
}

// words returns what an error says.
export function words(e: unknown): string {
  return e instanceof Error ? e.message : String(e);
}
