"""Talks to an agent over A2A with the protocol's official client.

    client.py AGENT PROMPT [ANSWER...]

It reads the agent's card, sends the prompt, streams the task, answers its questions with the words that follow, and reads the
task at the end. The word "cancel" cancels the task when it works. It prints what it saw, one thing a line.
"""

import asyncio
import os
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import a2a_pb2 as types


def texts(parts):
    return [p.text.split("\n")[0] for p in parts if p.text]


def state(status):
    return types.TaskState.Name(status.state).removeprefix("TASK_STATE_").lower()


def message(text, task, context):
    return types.SendMessageRequest(
        message=types.Message(
            message_id=str(uuid.uuid4()),
            role=types.ROLE_USER,
            task_id=task,
            context_id=context,
            parts=[types.Part(text=text)],
        )
    )


async def send(client, text, task, context, cancel):
    """Sends a message, prints the stream, and returns the task's id, its context and its last state."""
    last, pieces, streamed = "", 0, ""
    async for event in client.send_message(message(text, task, context)):
        kind = event.WhichOneof("payload")
        if kind == "task":
            task, context, last = event.task.id, event.task.context_id, state(event.task.status)
            print("task", last)
        elif kind == "artifact_update":
            piece = "".join(p.text for p in event.artifact_update.artifact.parts)
            streamed = streamed + piece if event.artifact_update.append else piece
            pieces += 1
            if event.artifact_update.last_chunk:
                print("artifact", event.artifact_update.artifact.name, streamed.split("\n")[0])
        elif kind == "status_update":
            status = event.status_update.status
            last = state(status)
            for line in texts(status.message.parts):
                print("status", last, line)
            if last != "working":
                print("state", last)
            elif cancel:
                cancel = False
                ended = await client.cancel_task(types.CancelTaskRequest(id=task))
                print("cancelled", state(ended.status))
    return task, context, last


async def run(agent, prompt, answers):
    headers = {"Authorization": "Bearer " + os.environ["RADDLE_TOKEN"]}
    base = os.environ["RADDLE_URL"] + "/a2a/" + agent
    async with httpx.AsyncClient(headers=headers, timeout=60) as http, httpx.AsyncClient() as public:
        card = await A2ACardResolver(public, base).get_agent_card()  # without the token
        print("card", card.name)
        client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        task, context, last = await send(client, prompt, "", "", answers == ["cancel"])
        while last == "input_required" and answers:
            task, context, last = await send(client, answers.pop(0), task, context, False)
        read = await client.get_task(types.GetTaskRequest(id=task))
        print("read", state(read.status), len(read.history) > 0)
        for a in read.artifacts:
            print("has", a.name, texts(a.parts)[0])
        listed = await client.list_tasks(types.ListTasksRequest(context_id=context))
        print("listed", task in [t.id for t in listed.tasks])
        try:
            await client.get_task(types.GetTaskRequest(id="missing"))
        except A2AClientError as error:
            print("refused", type(error).__name__)
        except Exception as error:  # the client has its own classes for the protocol's errors
            print("refused", type(error).__name__)


asyncio.run(run(sys.argv[1], sys.argv[2], sys.argv[3:]))
