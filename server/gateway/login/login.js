"use strict";
// The code of the printed address is in the fragment, which browsers send to no server. It is exchanged for a cookie.
const message = document.getElementById("message");
const token = document.getElementById("token");
const out = document.getElementById("out");

async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (answer.ok) return "";
  const problem = await answer.json().catch(() => ({}));
  return problem.detail || answer.statusText;
}

function show(text, loggedIn) {
  message.textContent = text;
  token.hidden = loggedIn;
  out.hidden = !loggedIn;
}

// The page to show after the log-in. An address that does not lead below this server's is replaced by the first page.
const first = new URL("./", location.href);
let page = new URL(new URLSearchParams(location.search).get("page") || "./", first);
if (!page.href.startsWith(first.href)) page = first;

async function logIn(body) {
  const failed = await post("login", body);
  if (failed) show(failed, false);
  else location.replace(page);
}

token.addEventListener("submit", (event) => {
  event.preventDefault();
  const secret = document.getElementById("secret");
  logIn({ token: secret.value.trim() });
  secret.value = "";
});

out.addEventListener("submit", async (event) => {
  event.preventDefault();
  const failed = await post("logout", {});
  show(failed || "This browser is logged out.", !!failed);
});

const code = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
if (code) {
  logIn({ code });
} else {
  fetch("session").then((answer) => {
    show(answer.ok ? "This browser is logged in." : "Log in with a token, or with the address that raddle serve prints.", answer.ok);
  });
}
