// Numbers and times as people read them.

// age returns how long ago a time was.
export function age(time: string, now = Date.now()): string {
  const s = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  if (s < 5) return "just now";
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

export function exact(time: string): string {
  return new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

export function duration(ms: number): string {
  if (ms < 1) return "< 1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
}

// since returns a time after the start of a run.
export function since(ms: number): string {
  return "+" + (ms < 1 ? "0 ms" : duration(ms));
}

export function count(n: number, thing: string): string {
  return `${n.toLocaleString("en")} ${thing}${n === 1 ? "" : "s"}`;
}

export function cost(usd: number | null): string {
  if (usd === null) return "–";
  if (usd > 0 && usd < 0.0001) return "< $0.0001";
  return `$${usd > 0 && usd < 0.01 ? usd.toFixed(4) : usd.toFixed(2)}`;
}

// short returns a number in few characters: 950, 12.3k, 4.1M.
export function short(n: number): string {
  if (n < 1000) return String(n);
  if (n < 999_950) return (n / 1000).toFixed(n < 99_950 ? 1 : 0) + "k";
  return (n / 1_000_000).toFixed(1) + "M";
}

// firstLine returns the first line of a text that says something, without the signs of Markdown in front of it.
export function firstLine(text: string): string {
  const line = text.split("\n").find((l) => /[\p{L}\p{N}]/u.test(l)) ?? "";
  return line.trim().replace(/^(#+|[-*>])\s+/, "");
}

// visible returns a text with control and direction characters as signs that can be seen: a model can change neither the terminal nor the page with them.
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, (c) => {
    return "\u2423" + c.codePointAt(0)!.toString(16).padStart(4, "0");
  });
}
