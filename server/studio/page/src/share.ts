// A page in a file: it shows one run, with the answers that the API gave when the file was written, and requests nothing.

// Share is what a file has of its run.
interface Share {
  run: string;
  version: string; // of the program that wrote the file
  written: string; // when
  answers: Map<string, Answer>; // by what follows the run in the path of a request
}

interface Answer {
  status: number;
  value: unknown;
}

// Stored is the form in a file. values has each value once, parts before what they are parts of: a scalar as it is, a list as 0 and the places of its
// items, an object as 1 and the places of its keys and members in turn. An answer is the place of its value, and its status if that is not 200.
interface Stored {
  run: string;
  version: string;
  written: string;
  values: (string | number | boolean | null | number[])[];
  answers: Record<string, [number, number?]>;
}

function readShare(): Share | null {
  const element = document.getElementById("shared-run");
  if (!element) return null;
  const stored = JSON.parse(element.textContent ?? "") as Stored;
  const values: unknown[] = [];
  for (const v of stored.values) {
    if (!Array.isArray(v)) values.push(v);
    else if (v[0] === 0) values.push(v.slice(1).map((i) => values[i]));
    else values.push(readObject(v, values));
  }
  const answers = new Map(Object.entries(stored.answers).map(([path, [at, status]]) => [path, { status: status ?? 200, value: values[at] }]));
  return { run: stored.run, version: stored.version, written: stored.written, answers };
}

function readObject(places: number[], values: unknown[]): object {
  const members: [string, unknown][] = [];
  for (let i = 1; i < places.length; i += 2) members.push([values[places[i]!] as string, values[places[i + 1]!]]);
  return Object.fromEntries(members);
}

// share is what the file has that the page came from; null: a server has sent the page.
export const share = readShare();

// findAnswer returns the answer to a request for a path. A file has none for other runs, or for requests that change something.
export function findAnswer(path: string): Answer {
  const start = "runs/" + encodeURIComponent(share?.run ?? "");
  const none = { status: 404, value: { detail: "This file does not have it." } };
  return (path.startsWith(start) && share?.answers.get(path.slice(start.length))) || none;
}
