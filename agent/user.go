package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/tool"
)

// aliases are other names that models may use for a tool.
var aliases = map[string]string{"user__select": "user__ask", "agent__list_running": "agent__list"}

// userTool is one of the tools with which a model asks a person.
type userTool struct {
	name, doc string
	options   bool
	kind      string // of the question
	answer    func(u *userTool, in userArgs, answer any) (result any, problem string)
}

var userTools = []userTool{
	{name: "user__ask", kind: "select", options: true, answer: oneOption,
		doc: "Ask the user to choose one of several options. The user may also give an answer of their own."},
	{name: "user__confirm", kind: "confirm", answer: yesOrNo, doc: "Ask the user a question that is answered with yes or no."},
	{name: "user__input", kind: "input", answer: anyText, doc: "Ask the user a question that is answered with a text."},
	{name: "user__checkbox", kind: KindCheckbox, options: true, answer: someOptions,
		doc: "Ask the user to choose any number of several options, or none of them."},
}

// UserTools returns the tools with which a model asks the user: user__ask (also
// known as user__select), user__confirm, user__input and user__checkbox. Each
// call is a question of the run, which waits for its answer, in this process or
// a later one. If headless is true, no question is asked: the model is informed
// that no one is there.
func UserTools(headless bool) []tool.Tool {
	tools := make([]tool.Tool, len(userTools))
	for i := range userTools {
		u := &userTools[i]
		tools[i] = tool.Tool{Name: u.name, Description: u.doc, Schema: json.RawMessage(u.argsSchema()),
			Effect: tool.ReadOnly, Polls: true,
			Run: func(ctx context.Context, c tool.Call) (tool.Result, error) { return u.askUser(ctx, c, headless) }}
	}
	return tools
}

func (u *userTool) argsSchema() string {
	if u.options {
		return `{"type":"object","properties":{"question":{"type":"string","description":"What the user is asked"},` +
			`"options":{"type":"array","items":{"type":"string"},"description":"What the user may choose from"}},"required":["question","options"]}`
	}
	return `{"type":"object","properties":{"question":{"type":"string","description":"What the user is asked"}},"required":["question"]}`
}

type userArgs struct {
	Question string
	Options  []string
}

// parseArgs decodes the arguments. The options may be a text that contains a list;
// values of the list that are not texts are ignored.
func (u *userTool) parseArgs(raw json.RawMessage) (in userArgs, problem string) {
	var a struct {
		Question any             `json:"question"`
		Options  json.RawMessage `json:"options"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return in, err.Error()
	}
	in.Question, _ = a.Question.(string)
	if strings.TrimSpace(in.Question) == "" {
		return in, "'question' is required"
	}
	if !u.options {
		return in, ""
	}
	var text string
	if json.Unmarshal(a.Options, &text) == nil {
		a.Options = json.RawMessage(text)
	}
	var list []any
	if json.Unmarshal(a.Options, &list) != nil || list == nil {
		return in, "'options' is required and must be an array of strings"
	}
	for _, o := range list {
		if s, ok := o.(string); ok {
			in.Options = append(in.Options, s)
		}
	}
	if len(in.Options) == 0 {
		return in, "'options' is required and must be an array of strings"
	}
	return in, ""
}

// needsHuman is the result of a question if there is no person to ask.
type needsHuman struct {
	NeedsHuman bool     `json:"needs_human"`
	Action     string   `json:"action"`
	Question   string   `json:"question"`
	Options    []string `json:"options,omitempty"`
	Guidance   string   `json:"guidance"`
}

const guidance = "No one is present to answer. Choose a sensible default and continue, or stop and say what you need to know."

// noAnswer is the result of a question that will not be answered.
type noAnswer struct {
	Error    string `json:"error"`
	Fallback string `json:"fallback"`
}

func (u *userTool) askUser(ctx context.Context, c tool.Call, headless bool) (tool.Result, error) {
	in, problem := u.parseArgs(c.Args)
	if problem != "" {
		return tool.FailedResult("User interaction failed: %s", problem), nil
	}
	action := strings.TrimPrefix(u.name, "user__")
	if headless {
		return tool.JSONResult(needsHuman{true, action, in.Question, in.Options, guidance}), nil
	}
	ask := graph.Ask{Name: "user " + c.ID, Kind: u.kind, Prompt: in.Question, Options: in.Options, Free: true,
		Data: CallData{ID: c.ID, Tool: u.name, Args: c.Args}}
	if u.kind == "confirm" {
		ask.Options = []string{"yes", "no"}
	}
	for {
		answer, err := graph.Interrupt[any](ctx, ask)
		if refusal := refusalOf(err); refusal != nil {
			return tool.JSONResult(noAnswer{refusal.Reason, "Make your best judgment and proceed"}), nil
		}
		if err != nil {
			return tool.Result{}, err
		}
		result, problem := u.answer(u, in, answer)
		if problem == "" {
			return tool.JSONResult(result), nil
		}
		ask.Prompt = in.Question + "\n(" + problem + ")"
	}
}

type oneAnswer struct {
	Answer string `json:"answer"`
}

type manyAnswers struct {
	Answers []string `json:"answers"`
}

func formatAnswer(answer any) string {
	if s, ok := answer.(string); ok {
		return s
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return fmt.Sprint(answer)
	}
	return string(b)
}

func anyText(_ *userTool, _ userArgs, answer any) (any, string) {
	return oneAnswer{formatAnswer(answer)}, ""
}

func oneOption(_ *userTool, _ userArgs, answer any) (any, string) {
	text := formatAnswer(answer)
	if strings.TrimSpace(text) == "" {
		return nil, "the answer is empty"
	}
	return oneAnswer{text}, ""
}

func yesOrNo(_ *userTool, _ userArgs, answer any) (any, string) {
	switch strings.ToLower(strings.TrimSpace(formatAnswer(answer))) {
	case "yes", "y", "true", "":
		return oneAnswer{"yes"}, ""
	case "no", "n", "false":
		return oneAnswer{"no"}, ""
	}
	return nil, "answer yes or no"
}

// someOptions accepts a list, or a text with options on separate lines or
// separated by commas.
func someOptions(_ *userTool, in userArgs, answer any) (any, string) {
	var chosen []string
	switch a := answer.(type) {
	case nil:
	case []any:
		for _, o := range a {
			chosen = append(chosen, formatAnswer(o))
		}
	case string:
		chosen = splitOptions(a, in.Options)
	default:
		return nil, "answer with a list of options"
	}
	for _, c := range chosen {
		if !slices.Contains(in.Options, c) {
			return nil, fmt.Sprintf("%q is not one of %s", c, strings.Join(in.Options, ", "))
		}
	}
	if chosen == nil {
		chosen = []string{}
	}
	return manyAnswers{chosen}, ""
}

func splitOptions(text string, options []string) (chosen []string) {
	if slices.Contains(options, text) {
		return []string{text}
	}
	sep := "\n"
	if !strings.Contains(text, sep) {
		sep = ","
	}
	for part := range strings.SplitSeq(text, sep) {
		if part = strings.TrimSpace(part); part != "" {
			chosen = append(chosen, part)
		}
	}
	return chosen
}
