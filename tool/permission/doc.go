// Package permission decides whether a tool call may run, from what the call would touch, from rules that people wrote,
// and from answers they gave. It only decides: it shows no questions and runs nothing but git, which it asks for the
// settings of a repository. Only [RememberRules] and the Record methods of [Consents] write files.
//
//	policy := permission.Policy{Rules: []permission.Rules{user}, Workspace: dir}
//	decision, err := policy.Decide(ctx, t, call)
//
// A call is taken apart into its needs: each simple command of a shell text,
// each file read or written, each host. Every need must be allowed by itself, so
// that nothing hides behind something harmless. For a need, in this order:
//
//  1. a Deny rule that matches denies it,
//  2. what was granted for this run allows it,
//  3. an Ask rule that matches, or a Deny rule that might, asks,
//  4. an Allow rule that matches allows it,
//  5. otherwise the default: reading inside the workspace and writing there are
//     allowed, except for hidden files of the home directory and files that run
//     later; a small list of commands that only read is allowed; everything else
//     asks.
//
// A [Mode] changes that: ModePlan denies, after the first step, what does more than read, and
// ModeAsk asks in the last step about changes in the workspace. ModeBox denies what would ask.
//
// Rules that deny or ask are wider than rules that allow: they mean everything below a directory
// that they match, each directory in which they may match something, and every part of a shell text
// that cannot be understood. Rules that allow mean only what is certain to match.
//
// The decision covers the call, not the process: a program that is allowed to run can do everything
// that its user can do.
package permission
