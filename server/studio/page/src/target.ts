// targetOf returns the element that an event comes from. The document and the window are none.
export const targetOf = (e: Event): Element | null => (e.target instanceof Element ? e.target : null);

// isShortcut reports whether a key speaks to the page: it has no modifier, and the person does not type a text or choose from a list.
export function isShortcut(e: KeyboardEvent): boolean {
  return !e.ctrlKey && !e.metaKey && !e.altKey && !targetOf(e)?.matches("input, textarea, select");
}
