"""Decides whether the gaps that were found are looked up in another round."""

import json
import os


def state():
    path = os.environ.get("GRAPH_STATE_FILE")
    if path:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    return json.loads(os.environ["GRAPH_STATE"])


values = state()
rounds = values["round"] + 1
most = 1 if os.environ.get("LLM_AGENT_VAR_DEPTH") == "quick" else 2
gaps = [gap for gap in values.get("gaps") or [] if isinstance(gap, str) and gap.strip()]

out = {"round": rounds}
if gaps and rounds < most:
    out |= {"questions": gaps[:4], "_next": "research"}
print(json.dumps(out))
