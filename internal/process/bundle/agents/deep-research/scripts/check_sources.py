"""Checks the sources of the report against the notes: sources that were not read cannot be cited. It asks for one new version, and lists the
faults that remain below the report."""

import json
import os
import re


def state():
    path = os.environ.get("GRAPH_STATE_FILE")
    if path:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    return json.loads(os.environ["GRAPH_STATE"])


def addresses(text):
    found = re.findall(r"https?://[^\s<>\"'`\])}|]+", text)
    return {address.rstrip(".,;:!?*_/") for address in found}


values = state()
report = values["report"]
read = addresses("\n".join(note if isinstance(note, str) else json.dumps(note) for note in values["notes"]))
faults = [f"{address} is cited, and does not occur in the notes." for address in sorted(addresses(report) - read)]

body, _, sources = report.rpartition("Sources")
cited = set(re.findall(r"\[(\d{1,3})\]", body or report))
listed = set(re.findall(r"\[(\d{1,3})\]", sources)) if body else set()
if body:
    faults += [f"[{number}] is cited, and is not among the sources." for number in sorted(cited - listed, key=int)]

out = {}
if faults and values["complaints"] == "none":
    out = {"complaints": " ".join(faults), "_next": "write"}
elif faults:
    out = {"report": report.rstrip() + "\n\nNot confirmed:\n" + "\n".join("- " + fault for fault in faults)}
print(json.dumps(out))
