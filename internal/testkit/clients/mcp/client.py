"""A client of raddle with MCP's library for Python, over stdio. Its first argument is the program, the second says what it does."""

import asyncio
import os
import sys

import mcp_types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def answer(context, params):
    """Answers each question: the first one with yes, others with a text."""
    print("asked:", params.message.strip().splitlines()[-1])
    value = "yes" if "Page" in params.message else "Look at the queue first."
    return types.ElicitResult(action="accept", content={"answer": value})


def show(result):
    """Prints a result."""
    print("error:" if result.is_error else "result:", result.structured_content["status"], result.content[0].text.strip())


async def reply(session):
    """Asks the assistant, which calls its tools."""
    lines = []

    async def progress(done, total, message):
        lines.append(message)

    show(await session.call_tool("assistant", {"prompt": "Where is order 1007?"}, progress_callback=progress))
    print("calls:", len([line for line in lines if line.startswith("tool call:")]))


async def question(session):
    """Runs a graph that asks two questions."""
    show(await session.call_tool("triage", {}))


async def error(session):
    """Runs an agent that fails."""
    show(await session.call_tool("assistant", {"prompt": "nothing that the transcript knows"}))


async def cancel(session):
    """Cancels a call when the agent works."""
    working = asyncio.Event()

    async def progress(done, total, message):
        if "work" in (message or ""):
            working.set()

    call = asyncio.create_task(session.call_tool("slow", {}, progress_callback=progress))
    await working.wait()
    call.cancel()
    try:
        await call
    except asyncio.CancelledError:
        print("cancelled")
    await session.send_ping()


async def main():
    program, what = sys.argv[1:]
    server = StdioServerParameters(command=program, args=["mcp"], env=dict(os.environ))
    async with stdio_client(server) as streams, ClientSession(*streams, elicitation_callback=answer) as session:
        await session.initialize()
        await {"reply": reply, "question": question, "cancel": cancel, "error": error}[what](session)


asyncio.run(main())
