package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/internal/process/conversation"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
	"raddle.dev/server"
)

// Conversation is what was said in a session.
type Conversation struct {
	runs.Info
	Record   int64         `json:"record" doc:"the newest record of its journal: the messages are those of all events up to it"`
	Messages []agent.Entry `json:"messages" nullable:"false"`
}

// SessionPath selects a conversation.
type SessionPath struct {
	Agent string `path:"agent"`
	Name  string `path:"name"`
}

// Branch is one branch of a conversation.
type Branch struct {
	Session string    `json:"session" doc:"the branch, as sessions/{agent}/{name} and a start name it"`
	Name    string    `json:"name" doc:"main for the first branch, then b2, b3 in the order in which they began"`
	From    int       `json:"from" doc:"the turns that it shares with the branch that it was forked from; 0 for the first one"`
	Current bool      `json:"current" doc:"it is the branch of the session"`
	Updated time.Time `json:"updated"`
	Last    string    `json:"last" doc:"the first line of its last message"`
	Runs    []string  `json:"runs" nullable:"false" doc:"the runs of its turns, oldest first"`
}

// BranchList has the branches of a conversation.
type BranchList struct {
	Branches []Branch `json:"branches" nullable:"false" doc:"in the order in which they began"`
}

type branchInput struct {
	SessionPath
	Body struct {
		Before string `json:"before" minLength:"1" doc:"run of the turn that the branch has another one for"`
	}
}

// Branched is a new branch of a conversation.
type Branched struct {
	Session string `json:"session" doc:"the branch: a start with this session is its next turn"`
}

type sessionsInput struct {
	Paging
	AgentQuery
	Text string `query:"text" doc:"only conversations with this text in their name, in a message of a person or in a reply"`
}

// A sessionHandler has the operations on conversations.
type sessionHandler struct{ *handler }

// addSessions adds the operations on conversations.
func (h sessionHandler) addSessions() {
	add(h.handler, operation{http.MethodGet, "/sessions", "list-sessions", "List conversations", server.ScopeRead, 0}, h.listSessions)
	add(h.handler, operation{http.MethodGet, "/sessions/{agent}/{name}", "show-session", "Show what was said in a conversation", server.ScopeRead, 0}, h.showSession)
	add(h.handler, operation{http.MethodGet, "/sessions/{agent}/{name}/branches", "list-branches", "List the branches of a conversation with their turns", server.ScopeRead, 0}, h.listBranches)
	add(h.handler, operation{http.MethodPost, "/sessions/{agent}/{name}/branches", "branch-session", "Make a branch of a conversation that ends before a turn, for another message in its place", server.ScopeStart, http.StatusCreated}, h.branchSession)
}

func (h sessionHandler) listSessions(ctx context.Context, in *sessionsInput) (*body[Page[runs.Info]], error) {
	all, err := h.process.Runs.ListSessions(ctx, in.Agent)
	if err != nil {
		return nil, err
	}
	var list []runs.Info
	for _, s := range all {
		list = append(list, s.Info)
	}
	key := func(i *runs.Info) string { return i.Agent + "/" + i.Session }
	slices.SortFunc(list, func(a, b runs.Info) int { return strings.Compare(key(&a), key(&b)) })
	if in.Text != "" {
		text := strings.ToLower(in.Text)
		list = slices.DeleteFunc(list, func(i runs.Info) bool { return ctx.Err() == nil && !h.wasSaid(ctx, &i, text) })
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return cut(in.Paging, list, key, func(i *runs.Info, last string) bool { return key(i) > last })
}

// wasSaid reports whether a session has a text in lower case in its name, in what a person said, or in a reply. One
// that cannot be read has not.
func (h sessionHandler) wasSaid(ctx context.Context, i *runs.Info, text string) bool {
	if strings.Contains(strings.ToLower(i.Session), text) {
		return true
	}
	d, err := h.process.Runs.ReadRunDetail(ctx, runs.NameSession(i.Agent, i.Session))
	if err != nil {
		return false
	}
	entries, err := agent.ReadEntries(d.Snapshot.Values, 0)
	return err == nil && slices.ContainsFunc(entries, func(e agent.Entry) bool {
		switch e.Message.Role {
		case llm.RoleUser, llm.RoleAssistant:
			return strings.Contains(strings.ToLower(cmp.Or(e.Said, e.Message.Text())), text)
		}
		return false
	})
}

func (h sessionHandler) showSession(ctx context.Context, in *SessionPath) (*body[Conversation], error) {
	d, err := h.process.Runs.ReadRunDetail(ctx, runs.NameSession(in.Agent, in.Name))
	if err != nil {
		return nil, nameSession(in, err)
	}
	entries, err := agent.ReadEntries(d.Snapshot.Values, 0)
	return &body[Conversation]{Conversation{d.Info, d.Snapshot.Head, append([]agent.Entry{}, entries...)}}, err
}

// nameSession replaces an error about a session that does not exist.
func nameSession(in *SessionPath, err error) error {
	if is[*runs.UnknownError](err) {
		return newProblem(http.StatusNotFound, "unknown-session", "the agent "+in.Agent+" has no session "+in.Name)
	}
	return err
}

func (h sessionHandler) listBranches(ctx context.Context, in *SessionPath) (*body[BranchList], error) {
	if err := h.checkName(in.Agent); err != nil {
		return nil, err
	}
	if err := h.checkAgent(in.Agent); err != nil {
		return nil, err
	}
	list, err := conversation.ListBranches(ctx, h.process, in.Agent, in.Name)
	if err != nil {
		return nil, nameSession(in, err)
	}
	all := BranchList{Branches: []Branch{}}
	for _, w := range list {
		all.Branches = append(all.Branches, Branch{w.Session, w.Name, w.From, w.Current, w.Updated, w.Last, append([]string{}, w.Runs...)})
	}
	return &body[BranchList]{all}, nil
}

func (h sessionHandler) branchSession(ctx context.Context, in *branchInput) (*body[Branched], error) {
	if err := h.checkName(in.Agent); err != nil {
		return nil, err
	}
	if err := h.checkAgent(in.Agent); err != nil {
		return nil, err
	}
	session, err := conversation.BranchBefore(ctx, h.process, in.Agent, in.Name, in.Body.Before)
	if err != nil {
		return nil, nameSession(&in.SessionPath, err)
	}
	return &body[Branched]{Branched{session}}, nil
}
