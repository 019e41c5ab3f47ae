"""A client of raddle with OpenAI's library for Python. Its argument says what it does; see the functions."""

import json
import os
import sys

import openai

client = openai.OpenAI(base_url=os.environ["RADDLE_URL"] + "/v1", api_key=os.environ["RADDLE_TOKEN"], max_retries=0, timeout=60)


def ask(model, text, **options):
    """Returns the message of a completion and its run."""
    raw = client.chat.completions.with_raw_response.create(model=model, messages=[{"role": "user", "content": text}], **options)
    return raw.parse(), raw.headers["x-raddle-run"]


def models():
    """Prints which of two agents are listed."""
    print(*sorted(m.id for m in client.models.list() if m.id in ("assistant", "triage")))
    print(client.models.retrieve("triage").owned_by)


def stream():
    """Prints a streamed answer. The agent calls its tools in the middle of it."""
    finish, count, tokens, text = None, 0, None, ""
    for chunk in client.chat.completions.create(
        model="assistant",
        messages=[{"role": "user", "content": "Where is order 1007, and what would two raddles cost?"}],
        stream=True,
        stream_options={"include_usage": True},
    ):
        count += 1
        if chunk.usage:
            tokens = chunk.usage.total_tokens
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    print(text.strip())
    print(finish, tokens, json.dumps(count > 3))


def question():
    """Asks for an incident, answers what the run asks, and prints the end."""
    done, run = ask("triage", "The checkout is slow.")
    while done.model_extra["raddle"]["status"] == "waiting":
        text = done.choices[0].message.content
        page = "Page the engineer" in text
        print("asked:", "page?" if page else text.strip().splitlines()[0])
        done, again = ask("triage", "yes" if page else "Call me.", extra_headers={"X-Raddle-Run": run})
        print("same run:", json.dumps(again == run))
    print(done.choices[0].message.content.splitlines()[0])
    print(done.choices[0].finish_reason, done.model_extra["raddle"]["status"])


def cancel():
    """Closes a stream while the agent works, and prints its run."""
    with client.chat.completions.with_streaming_response.create(model="slow", messages=[{"role": "user", "content": "Work"}], stream=True) as response:
        for line in response.iter_lines():
            if line.startswith("data: "):
                break
        print(response.headers["x-raddle-run"])


def error():
    """Prints errors of a request, of a run, and of a stream."""
    for model, options in (("missing", {}), ("assistant", {"n": 2}), ("failing", {})):
        try:
            ask(model, "Hi", **options)
        except openai.APIStatusError as e:
            print(type(e).__name__, e.status_code, json.dumps(e.code), json.dumps(e.param))
    try:
        for _ in client.chat.completions.create(model="failing", messages=[{"role": "user", "content": "Hi"}], stream=True):
            pass
    except openai.APIError as e:
        print(type(e).__name__, json.dumps(e.code))
    try:
        openai.OpenAI(base_url=client.base_url, api_key="wrong", max_retries=0).models.list()
    except openai.APIStatusError as e:
        print(type(e).__name__, e.status_code)


{f.__name__: f for f in (models, stream, question, cancel, error)}[sys.argv[1]]()
