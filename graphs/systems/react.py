"""ReAct: an agent that thinks and acts in turn; its tools are the retriever and those of its context.

Yao et al., ICLR 2023, arXiv 2210.03629.
"""

from __future__ import annotations

from typing import Unpack

from langgraph.runtime import Runtime

from ...modules.errors import BudgetSpent
from ...modules.reader.multistep_prompts import OBSERVATION, parse_action, react_messages
from ..rag.graph import GraphOptions, RagGraph
from ..threads.context import RunContext
from ..threads.state import RagState
from .rounds import Written, add_round, build_rounds, observed_rounds, write_step


def build_react(**options: Unpack[GraphOptions]) -> RagGraph:
    """Build the ReAct graph; its context needs a retriever and a reader, and may have tools. Options as ``RagGraph``'s.

    ::

        retrieve_round ─> act ─ "Action: Search[…]" ─> retrieve_round
              │            ├ "Action: NAME[…]" ─> use_tool ─> as after a search
              │            └ "Action: Finish[…]" ─┐
              └ no depth left ─────────────────> augment ─> generate

    The reader answers from the passages and results of all rounds. At depth d it takes at most d + 1 model calls. A
    thread that is killed while it uses a tool uses it again when it is resumed.

    ::

        graph = build_react(context=RagContext(reader=llm, retriever=retriever), checkpointer="memory:")
        print(graph.invoke("Which oil does KS-1 need?")["answer"])
    """
    return build_rounds("react", act, use_tool=use_tool, **options)


async def act(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Think and act on the earlier rounds and their results; a reply without an action ends the rounds."""
    services = runtime.context.services
    tools = {tool.name: tool.description for tool in services.tools}
    messages = react_messages(state["query"], observed_rounds(state), services.prompts, tools=tools)

    def read(reply: str) -> Written:
        action = parse_action(reply, list(tools))
        return Written(text=action.thought, next_query=action.query, next_tool=action.tool)

    return await write_step(state, runtime, node="act", messages=messages, read=read, stop=(OBSERVATION,))


async def use_tool(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Use the tool that the agent named; what it returns are chunks like those of a search.

    Raises:
        UserError: The user must correct a setting before the tool can be used.
    """
    newest = state["steps"][-1]
    tool = next(each for each in runtime.context.services.tools if each.name == newest["next_tool"])
    try:
        async with runtime.context.budget.in_time():
            results = await tool.use(newest["next_query"])
    except BudgetSpent:
        results = []
    return add_round(state, runtime, results, node="use_tool", query=newest["next_query"], tool=tool.name)
