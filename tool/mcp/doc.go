// Package mcp gives models the tools of servers that speak the Model Context
// Protocol: over the pipes of a child process, over streamable HTTP, and over
// the older event streams (SSE).
//
//	file, err := mcp.Load("mcp.json")
//	servers := mcp.Open(file, mcp.Options{})
//	defer servers.Close()
//	tools, failed := servers.Tools(ctx, []string{"github", "docs"})
//
// [Open] starts nothing. [Servers.Tools] starts the servers that it names, all at the same time. All users of the same
// Servers share one connection to each. A server that cannot be started is reported and left out. If a server dies, its
// running calls end with an error that the model reads, and the next call starts it again, after a growing pause, until
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
// ${NAME} and {{NAME}} in a server's entry stand for values of the environment.
// Values that are secret by their form or their name are removed from everything
// that a server says: results, errors and its stderr.
package mcp
