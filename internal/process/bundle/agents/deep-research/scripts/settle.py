"""Takes the question itself where the plan has no questions."""

import json
import os


def state():
    path = os.environ.get("GRAPH_STATE_FILE")
    if path:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    return json.loads(os.environ["GRAPH_STATE"])


values = state()
planned = values.get("questions") or []
questions = [q for q in planned if isinstance(q, str) and q.strip()] if isinstance(planned, list) else []
print(json.dumps({"questions": questions or [values["initial_prompt"]]}))
