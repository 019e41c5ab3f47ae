// Package mcp gives models the tools of servers that speak the Model Context
// Protocol: over the pipes of a child process, over streamable HTTP, and over
// the older event streams (SSE).
//
//	file, err := mcp.Load("mcp.json")
//	servers := mcp.Open(file, mcp.Options{})
//	defer servers.Close()
//	tools, failed := servers.Tools(ctx, []string{"github", "docs"})
//
// [Open] starts nothing. The servers that are named to [Servers.Tools] are
// started then, at the same time, and each is one connection for all that
// use the same Servers. A server that cannot be started is reported and left
// out. One that dies ends its running calls with an error that the model
// reads; it is started again by the next call, after a growing pause, until
// [Options.Restarts] is used up.
//
// Each server is offered as three functions, mcp_invoke_ID, mcp_search_ID and
// mcp_describe_ID, so that a hundred tools cost no more than one. A server with
// few tools is offered directly as well, each tool as mcp__ID__TOOL with its
// own schema. Two more functions list and read resources and prompts, where a
// server has them.
//
// A call of a tool may ask a person (elicitation): it ends with a
// [tool.Question]. The call with the same key and the answers continues it.
//
// Values of the environment get into a server's entry by ${NAME} or {{NAME}}.
// Those that are secret by their form or their name are taken out of everything
// a server says, be it a result, an error or its stderr.
package mcp
