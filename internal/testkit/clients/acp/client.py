"""An editor with ACP's library for Python. Its first argument is the program, the second says what it does."""

import asyncio
import os
import sys

import acp
from acp.schema import AllowedOutcome, RequestPermissionResponse


class Editor(acp.Client):
    """Prints what comes, and allows every call once."""

    def __init__(self):
        self.text, self.calls, self.plans = "", 0, 0

    async def session_update(self, session_id, update, **kwargs):
        kind = update.session_update
        if kind == "agent_message_chunk":
            self.text += update.content.text
        elif kind == "tool_call":
            self.calls += 1
        elif kind == "plan":
            self.plans += 1

    async def request_permission(self, options, session_id, tool_call, **kwargs):
        print("permission:", ", ".join(o.kind for o in options))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id))


async def main():
    program, what = sys.argv[1:]
    agent = "slow" if what == "cancel" else "assistant"
    editor = Editor()
    async with acp.spawn_agent_process(editor, program, "acp", agent, env=dict(os.environ)) as (conn, process):
        await conn.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = (await conn.new_session(cwd=os.getcwd(), mcp_servers=[])).session_id

        async def say(text):
            editor.text = ""
            result = await conn.prompt(prompt=[acp.text_block(text)], session_id=session)
            print(result.stop_reason, editor.text.strip())

        if what == "reply":
            await say("Where is order 1007, and what would two raddles cost?")
            print("calls:", editor.calls)
        elif what == "question":
            await say("Reserve a raddle for Ada.")
            await say("today")
            print("plan:", editor.plans > 0)
        elif what == "cancel":
            turn = asyncio.create_task(say("work"))
            while not os.path.exists("started"):
                await asyncio.sleep(0.05)
            await conn.cancel(session_id=session)
            await turn
        elif what == "error":
            try:
                await say("nothing that the transcript knows")
            except acp.RequestError as e:
                print("error:", "run" in str(e))


asyncio.run(main())
