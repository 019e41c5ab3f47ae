import { useEffect, useRef, useState } from "preact/hooks";

// lookTime is how many milliseconds a person must have been able to look at a question before an answer can allow anything.
const lookTime = 1000;

// isFramed reports whether another page shows this one. The server forbids it; a page that is framed all the same allows nothing.
export const isFramed = () => window.top !== window;

// isCovered reports whether something else is in front of an element.
function isCovered(e: Element): boolean {
  const r = e.getBoundingClientRect();
  const front = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
  return front === null || !(e.contains(front) || front.contains(e));
}

// An Intent knows whether a person means what they press.
class Intent {
  private seenSince = Infinity; // the question is in view, in a window with the focus
  private focusedSince = Infinity; // it has the focus, too
  private inView = false;

  constructor(
    private form: HTMLElement, // the question; what it is an article of has the focus, too
    private onReady: (ready: boolean) => void,
  ) {}

  // watch looks at the question until the function that it returns is called.
  watch(): () => void {
    const around = this.around();
    const buttons = this.form.querySelector(".options") ?? this.form;
    const seen = new IntersectionObserver(
      (entries) => {
        this.inView = (entries.at(-1)?.intersectionRatio ?? 0) > 0.99;
        this.update();
      },
      { threshold: [0, 1] },
    );
    seen.observe(buttons);
    const update = () => this.update();
    const leave = (e: FocusEvent) => {
      if (!around.contains(e.relatedTarget as Node | null)) this.focusedSince = Infinity;
      this.update();
    };
    around.addEventListener("focusin", update);
    around.addEventListener("focusout", leave as EventListener);
    for (const name of ["focus", "blur"]) addEventListener(name, update);
    document.addEventListener("visibilitychange", update);
    const timer = setInterval(update, 100);
    return () => {
      seen.disconnect();
      clearInterval(timer);
      around.removeEventListener("focusin", update);
      around.removeEventListener("focusout", leave as EventListener);
      for (const name of ["focus", "blur"]) removeEventListener(name, update);
      document.removeEventListener("visibilitychange", update);
    };
  }

  private around(): Element {
    return this.form.closest("article") ?? this.form;
  }

  private update(): void {
    const now = performance.now();
    const buttons = this.form.querySelector(".options") ?? this.form;
    const seen = !isFramed() && this.inView && document.visibilityState === "visible" && document.hasFocus() && !isCovered(buttons);
    const focused = seen && this.around().contains(document.activeElement);
    this.seenSince = seen ? Math.min(this.seenSince, now) : Infinity;
    this.focusedSince = focused ? Math.min(this.focusedSince, now) : Infinity;
    this.onReady(now - this.focusedSince >= lookTime);
  }

  // isMeant reports whether an event means an answer: a person made it, with a pointer on a question that was in view for a moment, or with a key
  // in a question that also had the focus for that moment. A key that comes too early begins the moment again.
  isMeant(e: Event): boolean {
    if (!e.isTrusted) return false;
    this.update();
    const byPointer = e instanceof MouseEvent && e.detail > 0;
    const now = performance.now();
    if (now - (byPointer ? this.seenSince : this.focusedSince) >= lookTime) return true;
    if (this.focusedSince < Infinity) this.focusedSince = now;
    this.onReady(false);
    return false;
  }
}

// useIntent watches a form that asks for a permission, if on. isMeant reports whether an event answers it; if it does not, hint says why. ready is
// true when a key would, and false when it would not. Otherwise every event is meant, and ready says nothing.
export function useIntent(on: boolean) {
  const form = useRef<HTMLFormElement>(null);
  const intent = useRef<Intent | null>(null);
  const [ready, setReady] = useState(false);
  const [hint, setHint] = useState("");
  useEffect(() => {
    if (!on || !form.current) return;
    intent.current = new Intent(form.current, setReady);
    const end = intent.current.watch();
    return () => {
      end();
      intent.current = null;
    };
  }, [on]);
  const isMeant = (e: Event) => {
    if (!on) return true;
    const meant = intent.current?.isMeant(e) ?? false;
    setHint(meant ? "" : "Nothing was answered: keys answer this when it has had the focus for a second, buttons when it was in view for a second.");
    return meant;
  };
  return { form, ready: on ? String(ready) : undefined, hint, isMeant };
}
