package flow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm"
	"raddle.dev/team"
	"raddle.dev/tool"
)

// These are the keys of a config.yaml's agent, in addition to those of package
// agent.
var (
	saidKey = graph.Last[string]("prompt") // what the user says in this turn
	// the system prompt without the texts about tools; created once for a thread
	systemKey = graph.Last[string]("system")
	openedKey = graph.Last[bool]("begun") // the beginning of the conversation is in the state
)

// These are the nodes of such an agent, around those of package agent.
const (
	nodeBegin = "begin"
	nodeDone  = "done"
)

// turnWrites returns the first writes of a turn.
func turnWrites(prompt string, media []llm.Part) []graph.Write {
	return append(agent.ResetTurn(), saidKey.Set(prompt), mediaKey.Reset(llm.Message{Role: llm.RoleUser, Parts: media}))
}

// StoredMedia returns the pictures and documents that a run was started with, from the values of its state at its
// start.
func StoredMedia(values []history.StoredValue) ([]llm.Part, error) {
	var m llm.Message
	for _, v := range values {
		if v.Key != mediaKey.Name() || len(v.Parts) == 0 {
			continue
		}
		if err := json.Unmarshal(bytes.Join(v.Parts, nil), &m); err != nil {
			return nil, fmt.Errorf("what is attached to the prompt: %w", err)
		}
	}
	return m.Parts, nil
}

// withMedia returns a message of the user with pictures and documents before its text, where providers want them.
func withMedia(m llm.Message, media []llm.Part) llm.Message {
	m.Parts = slices.Concat(media, m.Parts)
	return m
}

// compileConfig compiles an agent that is a model with tools.
func (b *builder) compileConfig(a *Agent) (*graph.Graph, error) {
	if err := a.checkReady(); err != nil {
		return nil, err
	}
	c := newConversation(a, nil)
	def, err := b.buildLoop(c)
	if err != nil {
		return nil, fmt.Errorf("agent '%s': %w", a.Name, err)
	}
	c.wrapTurn(&def)
	a.host.shareInNodes(&def)
	g, err := graph.Compile(def)
	if err != nil {
		return nil, fmt.Errorf("agent '%s': %w", a.Name, err)
	}
	b.graphs[a] = g
	return g, nil
}

// buildLoop returns a turn of a conversation, without its beginning and its end.
func (b *builder) buildLoop(c *conversation) (graph.Def, error) {
	if c.agent.spawnSet != nil && !c.hasNoTools() {
		return b.buildTeam(c)
	}
	return c.loopConfig().Def()
}

// wrapTurn adds the beginning and the end to a turn.
func (c *conversation) wrapTurn(d *graph.Def) {
	d.Keys = append(d.Keys, saidKey, systemKey, openedKey, mediaKey)
	d.Nodes = append(d.Nodes, graph.Node{Name: nodeBegin, Kind: "begin", Run: c.agent.host.redactErrors(c.beginTurn)}, graph.Node{Name: nodeDone, Kind: "end", Run: c.finishTurn, Routes: []string{graph.End}, Quiet: true})
	redirectEnds(d.Edges, nodeDone)
	d.Edges = append(d.Edges, graph.Edge{From: []string{nodeBegin}, To: d.Start})
	d.Start = []string{nodeBegin}
}

// redirectEnds changes edges that lead to the end, so that they lead to a node.
func redirectEnds(edges []graph.Edge, to string) {
	for _, e := range edges {
		for label, target := range e.Cases {
			if target == graph.End {
				e.Cases[label] = to
			}
		}
		for i, target := range e.To {
			if target == graph.End {
				e.To[i] = to
			}
		}
	}
}

// localTools returns the tools of the agent in the order in which they are declared,
// without those of its servers, which are requested when they are needed.
func (a *Agent) localTools() []tool.Tool {
	tools := a.Tools.uniqueTools()
	builtin := userTools(a)
	if a.Config == nil || a.member || a.spawnSet != nil {
		builtin = append(team.Tools(a.canSpawn()), builtin...)
	}
	if usesDocuments(a) {
		builtin = append(builtin, queryTool(a))
	}
	if a.Config != nil {
		builtin = append(builtin, skillTools(a, ListSkills(a))...)
	}
	for _, t := range builtin {
		if !slices.ContainsFunc(tools, func(o tool.Tool) bool { return o.Name == t.Name }) {
			tools = append(tools, t)
		}
	}
	return tools
}

// userTools returns the tools with which the agent asks a person. If there is
// no person to ask, and the agent is spawned or below a spawned agent, they ask
// the agent that spawned it.
func userTools(a *Agent) []tool.Tool {
	tools := agent.UserTools(a.host.Headless)
	if !a.host.Headless && !a.asks {
		return tools
	}
	return team.WithEscalation(tools, escalationPatience(a))
}

// conversation is the conversation of an agent with its model.
type conversation struct {
	agent  *Agent
	models *modelCache
	tools  []tool.Tool
	team   *team.Config // the team that the agent belongs to; nil: none
}

// newConversation returns the agent's conversation as part of a team, or without a
// team if t is nil.
func newConversation(a *Agent, t *team.Config) *conversation {
	return &conversation{agent: a, models: &modelCache{host: a.host, dir: a.Dir}, tools: a.localTools(), team: t}
}

// hasNoTools reports whether the model cannot call tools.
func (c *conversation) hasNoTools() bool { return c.agent.modelFacts(c.agent.modelID("")).NoTools }

// loopConfig returns the agent in the form of package agent.
func (c *conversation) loopConfig() agent.Config {
	a := c.agent
	f := c.agent.Config
	id := a.modelID("")
	s := f.Sampling
	req := llm.Request{Temperature: s.Temperature, TopP: s.TopP, Effort: s.ReasoningEffort, Serial: s.ParallelCalls != nil && !*s.ParallelCalls, Provided: s.ProviderTools}
	if s.Model == "" {
		req.Temperature = cmp.Or(s.Temperature, a.host.Temperature)
		req.TopP = cmp.Or(s.TopP, a.host.TopP)
	}
	l := baseLoopConfig(a, id, c.models)
	l.Name = a.Name
	l.Request = req
	l.System = c.systemPrompt
	l.MaxIterations = f.Limits.Iterations
	l.Retry.Patience = retryPatience(a)
	l.Budget = tightenBudget(f.Limits, l.Budget)
	if soft := f.Limits.Compression; soft != nil {
		l.Window.Soft = *soft
		l.Window.Keep = f.Limits.KeepLast
		l.Window.Summary = l.Model
	}
	if most := f.Limits.ToolResult; most > 0 {
		l.AroundTools = append(l.AroundTools, shortenResults(a, most))
	}
	if l.Tools = c.tools; c.hasNoTools() {
		l.Tools = nil
		return l
	}
	l.Sources = serverSources(a, a.Tools.Servers, len(a.Tools.Tools) == 0)
	l.Kits = skillKits(a, ListSkills(a))
	if f.Continue.Auto {
		l.Continue = agent.Continue{Max: f.Continue.Max, Prompt: c.newPlaceholderFiller().fillText(f.Continue.Prompt), Plain: true}
	}
	return l
}

// baseLoopConfig returns what the loops of an agent have in common: the loop of a
// config.yaml and those of llm nodes.
func baseLoopConfig(a *Agent, id string, models *modelCache) agent.Config {
	facts := a.modelFacts(id)
	m := &namedModel{cache: models, id: id}
	l := agent.Config{
		Model: m, Gate: a.host.Tooling.Gate, Hooks: findHooks(a), Headless: a.host.Headless, Redact: a.host.redact, Hold: a.host.holdLength, Budget: agent.Budget{Time: a.host.Tooling.Budget.Time, Prices: a.host.Tooling.Budget.Prices},
		Window: agent.Window{Tokens: facts.Window},
		Calls:  agent.Calls{InDoubt: a.host.Tooling.InDoubt, InDoubtForAll: a.host.Tooling.InDoubtForAll},

		AroundTools: slices.Clone(a.host.Tooling.Around),
	}
	if a.Config != nil {
		l.Calls.InDoubt = cmp.Or(a.Config.InDoubt, l.Calls.InDoubt)
	}
	l.Budget.Price = facts.Price
	if facts.Window > 0 {
		l.Window.Summary = m
	}
	return l
}

func (a *Agent) modelFacts(id string) ModelFacts {
	if a.host.Models == nil {
		return ModelFacts{}
	}
	return a.host.Models.Facts(a.Dir, id)
}

// shortenResults cuts the texts of results to a number of characters. It keeps their
// beginning and their end, because errors are often at the end. Secrets are
// removed first, because half of a secret would not be found.
func shortenResults(a *Agent, most int) agent.ToolMiddleware {
	return func(next agent.ToolFunc) agent.ToolFunc {
		return func(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
			r, err := next(ctx, t, c)
			for i, p := range r.Content {
				if text, ok := p.(llm.Text); ok {
					r.Content[i] = llm.Text{Text: truncateMiddle(a.host.redact(text.Text), most)}
				}
			}
			return r, err
		}
	}
}

// truncateMiddle returns the beginning and the end of a text that is longer than most
// characters.
func truncateMiddle(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	tail := most / 3
	return fmt.Sprintf("%s\n[%d characters are left out]\n%s", string(runes[:most-tail]), len(runes)-most, string(runes[len(runes)-tail:]))
}

// tightenBudget adds the file's limits to a budget: the lower limit applies.
func tightenBudget(l spec.Limits, b agent.Budget) agent.Budget {
	if l.Tokens > 0 && (b.Tokens == 0 || l.Tokens < b.Tokens) {
		b.Tokens = l.Tokens
	}
	if l.Cost != nil && (b.Money == 0 || *l.Cost < b.Money) {
		b.Money = *l.Cost
	}
	if l.Timeout != nil && (b.Time == 0 || l.Timeout.Duration() < b.Time) {
		b.Time = max(1, l.Timeout.Duration())
	}
	return b
}

// serverSources returns the servers of an agent or of a node. A server that cannot be used causes a warning: the other
// tools work. If needed is true, it is an error that no server can be used: a model without any tools would answer from
// memory.
func serverSources(a *Agent, ids []string, needed bool) agent.Sources {
	if len(ids) == 0 || a.Tools.Serve == nil {
		return agent.Sources{}
	}
	warn := func(ctx context.Context, failed []error) {
		for _, err := range failed {
			text := a.host.redact(err.Error())
			a.host.log().Warn(text)
			graph.Emit(ctx, agent.Warning{Text: text})
		}
	}
	start := func(ctx context.Context, ids []string) (map[string]bool, error) {
		if a.Tools.Start == nil {
			settled := map[string]bool{}
			for _, id := range ids {
				settled[id] = true
			}
			return settled, nil
		}
		settled, failed := a.Tools.Start(ctx, ids)
		warn(ctx, failed)
		return settled, nil // of those that ctx has cut off nothing is known, as of those that are still starting
	}
	tools := func(ctx context.Context, settled map[string]bool) (list []tool.Tool, err error) {
		var there []string
		starting := false
		for _, id := range ids {
			switch ready, over := settled[id]; {
			case ready:
				there = append(there, id)
			case !over && a.Tools.Starting != nil:
				starting = true
				list = append(list, a.Tools.Starting(id)...)
			}
		}
		if len(there) > 0 {
			served, failed := a.Tools.Serve(ctx, there)
			warn(ctx, failed)
			list = append(served, list...)
		}
		if needed && !starting && len(list) == 0 && ctx.Err() == nil {
			return nil, errors.New("all tools of this agent come from its MCP servers, and none of them can be used: the warnings say why")
		}
		return list, ctx.Err()
	}
	return agent.Sources{Names: ids, Start: start, Tools: tools}
}

// beginTurn creates the system prompt, once for a thread, and adds what the user
// says. If the turn is interrupted meanwhile, the next one creates the prompt.
func (c *conversation) beginTurn(ctx context.Context, s graph.State) (graph.Update, error) {
	run, release := agent.Interruptible(ctx)
	defer release()
	up, err := c.openTurn(run, s)
	if err != nil && ctx.Err() == nil && agent.IsInterrupted(ctx) {
		return addUserMessage(ctx, s, llm.User(saidKey.Get(s))), nil
	}
	return up, err
}

// openTurn is beginTurn for a turn that is not interrupted.
func (c *conversation) openTurn(ctx context.Context, s graph.State) (graph.Update, error) {
	if agent.IsCompaction(s) {
		return graph.Update{}, nil
	}
	said := saidKey.Get(s)
	prompt, err := c.withDocuments(ctx, said)
	if err != nil {
		return graph.Update{}, err
	}
	if prompt, err = c.runTurnStart(ctx, said, prompt); err != nil {
		return graph.Update{}, err
	}
	if openedKey.Get(s) {
		return addUserMessage(ctx, s, llm.User(prompt)), nil
	}
	text, err := graph.Do(ctx, "instructions", c.loadInstructions)
	if err != nil {
		return graph.Update{}, err
	}
	kits, err := c.loadPreloaded(ctx, &text)
	if err != nil {
		return graph.Update{}, err
	}
	system, messages := openingMessages(text, prompt)
	last := len(messages) - 1
	up := addUserMessage(ctx, s, messages[last])
	up.Writes = append([]graph.Write{systemKey.Set(system), openedKey.Set(true), agent.AppendMessages(messages[:last]...)}, up.Writes...)
	if len(kits) > 0 {
		up.Writes = append(up.Writes, agent.InUse.Set(kits))
	}
	return up, nil
}

// loadPreloaded adds the skills with which a conversation begins to its instructions, and returns what they bring.
func (c *conversation) loadPreloaded(ctx context.Context, text *string) (map[string]agent.Kit, error) {
	a := c.agent
	if len(a.Config.Skills.Preload) == 0 || c.hasNoTools() {
		return nil, nil
	}
	type loaded struct {
		Text string               `json:"text"`
		Kits map[string]agent.Kit `json:"kits"`
	}
	got, err := graph.Do(ctx, "skills", func(ctx context.Context) (loaded, error) {
		texts, kits, err := preloadSkills(ctx, a, a.Config.Skills, ListSkills(a))
		return loaded{a.host.redact(joinParagraphs(texts...)), kits}, err
	})
	*text = joinParagraphs(*text, got.Text)
	return got.Kits, err
}

// addUserMessage returns an update that adds what the user says to the conversation, with what is attached to it.
func addUserMessage(ctx context.Context, s graph.State, m llm.Message) graph.Update {
	media := mediaKey.Get(s).Parts
	up := graph.Put(agent.Messages.Set([]agent.Entry{agent.UserEntry(ctx, withMedia(m, media), saidKey.Get(s))}))
	if len(media) > 0 {
		up.Writes = append(up.Writes, mediaKey.Set(llm.Message{})) // it is in the conversation now
	}
	return up
}

// loadInstructions returns the instructions from the agent's file or its script,
// with placeholders filled in.
func (c *conversation) loadInstructions(ctx context.Context) (string, error) {
	a := c.agent
	text := a.Config.Prompting.Instructions
	if a.Config.Prompting.Dynamic {
		if a.Tools.Instructions == nil {
			return "", fmt.Errorf("%s: dynamic_instructions is set, but the agent has no tools script with a function `_instructions`", a.At("dynamic_instructions"))
		}
		var err error
		if text, err = a.Tools.Instructions(ctx); err != nil {
			return "", err
		}
		if strings.TrimSpace(text) == "" {
			return "", spec.Errorf("No return value from '_instructions' function")
		}
	}
	p := c.newPlaceholderFiller()
	if servers := serverSources(a, a.Tools.Servers, false); len(servers.Names) > 0 && strings.Contains(text, "{{__tools__}}") {
		settled, err := servers.Start(ctx, servers.Names)
		if err != nil {
			return "", err
		}
		served, err := servers.Tools(ctx, settled)
		if err != nil {
			return "", err
		}
		p.tools = slices.Insert(slices.Clone(p.tools), len(a.Tools.uniqueTools()), served...)
	}
	return a.host.redact(joinParagraphs(p.fillText(text), loadProject(ctx, a))), nil
}

func (c *conversation) newPlaceholderFiller() *placeholderFiller {
	a := c.agent
	p := &placeholderFiller{tools: c.allTools(), env: a.host.getenv, cwd: a.host.Workspace, now: time.Now()}
	values := variableValues(a)
	for _, v := range a.Config.Variables {
		if value, ok := values[v.Name]; ok {
			p.variables = append(p.variables, strictyaml.Pair{Key: v.Name, Value: value})
		}
	}
	return p
}

// systemPrompt returns the system prompt: the agent's own, and the texts that its
// built-in tools need.
func (c *conversation) systemPrompt(s graph.State) (string, error) {
	return c.withToolTexts(systemKey.Get(s)), nil
}

// withToolTexts returns a system prompt with the texts about built-in tools.
func (c *conversation) withToolTexts(system string) string {
	f := c.agent.Config
	texts := []string{system}
	if f.Continue.Auto && f.Prompting.ToolTexts.Todo {
		texts = append(texts, agent.TodoInstructions)
	}
	texts = append(texts, c.teamTexts()...)
	if f.Prompting.ToolTexts.User {
		texts = append(texts, userInstructions)
	}
	if !c.hasNoTools() {
		texts = append(texts, describeSkills(f.Skills, ListSkills(c.agent)))
	}
	if len(c.tools)+len(c.agent.Tools.Servers) > 0 && !c.hasNoTools() && c.agent.host.onlyReads() {
		texts = append(texts, planInstructions)
	}
	return joinParagraphs(texts...)
}

// planInstructions is what a model reads while its calls may only read.
const planInstructions = `## Plan mode
You may only read: every call that would change something, or run a program that may, is denied. Look at what you need to know. Then end your turn with a
plan for the user: the files that you would change and how, the commands that you would run, and what is still open. Do not say that you have made a change.`

// onlyReads reports whether calls may only read now.
func (h *Host) onlyReads() bool { return h.Tooling.OnlyReads != nil && h.Tooling.OnlyReads() }

// trustsDir reports whether the scripts of an agent's directory are trusted.
func (h *Host) trustsDir(dir string) bool {
	return h.Tooling.TrustsDir == nil || h.Tooling.TrustsDir(dir)
}

// teamTexts returns the texts about the tools of a team.
func (c *conversation) teamTexts() (texts []string) {
	if c.team == nil || c.hasNoTools() {
		return nil
	}
	enabled := c.agent.Config.Prompting.ToolTexts
	if rule := c.spawnRule(); rule != nil && enabled.Spawn {
		texts = append(texts, team.SpawnInstructions, c.team.Catalogue(*rule))
	}
	if enabled.Teammates {
		texts = append(texts, team.MailInstructions)
	}
	return texts
}

// userInstructions is the part of the system prompt about the user tools.
const userInstructions = `## Questions to the user

When a decision is the user's to make, ask instead of guessing:
- user__ask lets the user choose one of several options.
- user__confirm is for yes or no.
- user__input takes a text.
- user__checkbox lets the user choose any number of options.
Ask one thing at a time, and do not ask for what you can find out yourself.`

// finishTurn ends a turn with its text.
func (c *conversation) finishTurn(ctx context.Context, s graph.State) (graph.Update, error) {
	text := agent.LastResponse(s)
	switch {
	case c.agent.depth > c.agent.host.Depth:
		text = turnText(s)
	case agent.IsCompaction(s):
		text = ""
	case agent.WasInterrupted(s):
		text = agent.TurnText(s)
	}
	if !agent.IsCompaction(s) {
		in := agent.HookInput{On: agent.HookTurnEnd, Agent: c.agent.Name, Reply: text}
		if err := agent.RunHooks(agent.WithoutInterrupt(ctx), findHooks(c.agent), in, "", c.agent.host.redact); err != nil {
			return graph.Update{}, err
		}
	}
	return graph.Update{Halt: &graph.Halt{Value: text}}, nil
}

// turnText returns what the model has said since the user's message, starting a
// new line for each reply that has text.
func turnText(s graph.State) string {
	entries := agent.Messages.Get(s)
	first := len(entries)
	for first > 0 && (entries[first-1].Message.Role != llm.RoleUser || entries[first-1].By != "") {
		first--
	}
	var texts []string
	for _, e := range entries[first:] {
		if text := e.Message.Text(); e.Message.Role == llm.RoleAssistant && text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// namedModel is a model that is opened when it is first called.
type namedModel struct {
	cache *modelCache
	id    string
}

// Stream implements llm.Model.
func (m *namedModel) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		opened, err := m.cache.openModel(ctx, m.id)
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		opened.Stream(ctx, r)(yield)
	}
}
