// Markdown of models, which may be hostile: what remains is text with a few elements. Nothing is requested, and no script or style remains.
import DOMPurify from "dompurify";
import { Marked } from "marked";
import { useMemo } from "preact/hooks";
import { visible } from "./format";

const marked = new Marked({ gfm: true, breaks: true });
const longest = 200_000;

function escapeHTML(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

// HTML is shown as it is written, and a picture as its description.
marked.use({ renderer: { html: ({ text }) => escapeHTML(text), image: ({ text }) => escapeHTML(text) } });

const purifier = DOMPurify(window);
purifier.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("rel", "noopener noreferrer nofollow");
    node.setAttribute("target", "_blank");
  }
});

const allowed = {
  ALLOWED_TAGS: ["p", "br", "em", "strong", "del", "code", "pre", "blockquote", "ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "table", "thead", "tbody", "tr", "th", "td", "a"],
  ALLOWED_ATTR: ["href", "start"],
  ALLOWED_URI_REGEXP: /^https?:\/\//i,
};

export function Markdown({ text }: { text: string }) {
  const html = useMemo(() => {
    const shown = visible(text);
    if (shown.length > longest) return null;
    return purifier.sanitize(marked.parse(shown, { async: false }), allowed);
  }, [text]);
  if (html === null) return <pre class="text">{visible(text)}</pre>;
  return <div class="markdown" dangerouslySetInnerHTML={{ __html: html }} />;
}
