package openai

import (
	"slices"
	"strings"
)

// A Profile says how a server that is compatible with OpenAI's chat completions differs from them. Nothing else in the
// package knows a server by its name.
type Profile struct {
	Name  string   // in lower case, such as "groq"
	Hosts []string // the ends of the names of its hosts; none: it is recognised by its name only

	Thoughts ThoughtForm // how reasoning goes back
	Echo     []string    // members of a reply's message that go back as they came
	CallEcho []string    // members of a call that go back as they came
	// CallDefault is the JSON object of members of a call that another model has made, where the server requires them;
	// "": none.
	CallDefault string

	Effort EffortForm     // how effort is named
	Body   map[string]any // members that every request gets, unless Config.Body has others; it must not be changed

	NoUsage  bool   // the server refuses stream_options, and reports usage without it
	NoSerial bool   // the server refuses parallel_tool_calls
	NewLimit bool   // the server requires max_completion_tokens
	IDLength int    // ids of calls have exactly this many letters and digits; 0: OpenAI's rule
	Source   string // where its rules are published
}

// A ThoughtForm is how reasoning goes back to the server that it came from.
type ThoughtForm string

// These are the forms of reasoning in a message of the assistant.
const (
	// ThoughtsPlain puts it into reasoning_content of messages with calls. Servers of open models read it, and others
	// ignore it.
	ThoughtsPlain ThoughtForm = ""
	// ThoughtsRequired does the same, with an empty text where there is no reasoning: the server refuses calls without
	// the member.
	ThoughtsRequired ThoughtForm = "required"
	// ThoughtsField puts it into reasoning of messages with calls: the server refuses reasoning_content.
	ThoughtsField ThoughtForm = "reasoning"
	// ThoughtsTyped puts it into a part of the content: the server refuses every member.
	ThoughtsTyped ThoughtForm = "typed"
	// ThoughtsNever leaves it out.
	ThoughtsNever ThoughtForm = "never"
)

// An EffortForm is how a request names how hard the model should think.
type EffortForm string

// These are the forms of effort.
const (
	// EffortPlain is reasoning_effort, for "none" too.
	EffortPlain EffortForm = ""
	// EffortSwitch is reasoning_effort, and thinking with the type "disabled" for "none".
	EffortSwitch EffortForm = "switch"
	// EffortBudget is enable_thinking, with thinking_budget for a number of tokens; a level is reasoning_effort.
	EffortBudget EffortForm = "budget"
	// EffortNested is the object reasoning, with effort or max_tokens.
	EffortNested EffortForm = "nested"
)

// profiles has one row for each server or family of servers.
var profiles = []Profile{
	{
		Name:     "openai",
		Hosts:    append([]string{"api.openai.com"}, azureHosts...),
		Thoughts: ThoughtsNever,
		NewLimit: true,
		Source:   "platform.openai.com/docs/api-reference/chat",
	},
	{
		Name:     "groq",
		Hosts:    []string{"api.groq.com"},
		Thoughts: ThoughtsField,
		Source:   "console.groq.com/docs/reasoning; agentjido/req_llm#772, tensorzero/tensorzero#6353",
	},
	{
		Name:     "cerebras",
		Hosts:    []string{"api.cerebras.ai"},
		Thoughts: ThoughtsField,
		Source:   "inference-docs.cerebras.ai/capabilities/reasoning; QwenLM/qwen-code#11045",
	},
	{
		Name:     "mistral",
		Hosts:    []string{"api.mistral.ai"},
		Thoughts: ThoughtsTyped,
		NoUsage:  true,
		IDLength: 9,
		Source:   "docs.mistral.ai/capabilities/reasoning; charmbracelet/crush#1590, avante-corp/avante.nvim#2347",
	},
	{
		Name:     "deepseek",
		Hosts:    []string{"api.deepseek.com"},
		Thoughts: ThoughtsRequired,
		Effort:   EffortSwitch,
		Source:   "api-docs.deepseek.com/guides/thinking_mode; earendil-works/pi#3635",
	},
	{
		Name:     "moonshot",
		Hosts:    []string{"api.moonshot.ai", "api.moonshot.cn"},
		Thoughts: ThoughtsRequired,
		Effort:   EffortSwitch,
		Source:   "platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model; continuedev/continue#11806; platform.kimi.ai/docs/guide/use-reasoning-effort",
	},
	{
		Name:     "openrouter",
		Hosts:    []string{"openrouter.ai"},
		Thoughts: ThoughtsNever,
		Echo:     []string{"reasoning_details"},
		Effort:   EffortNested,
		Source:   "openrouter.ai/docs/guides/best-practices/reasoning-tokens; earendil-works/pi#260",
	},
	{
		Name:        "gemini-openai",
		Hosts:       []string{"generativelanguage.googleapis.com", "aiplatform.googleapis.com"},
		Thoughts:    ThoughtsNever,
		CallEcho:    []string{"extra_content"},
		CallDefault: `{"extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}}`,
		NoSerial:    true,
		Source:      "ai.google.dev/gemini-api/docs/thought-signatures; crmne/ruby_llm#588, jackmpcollins/magentic#382",
	},
	{Name: "xai", Hosts: []string{"api.x.ai"}, Thoughts: ThoughtsNever, Source: "docs.x.ai/docs/guides/reasoning"},
	{
		Name:     "together",
		Hosts:    []string{"api.together.xyz", "api.together.ai"},
		Thoughts: ThoughtsNever,
		Source:   "docs.together.ai/docs/reasoning-overview",
	},
	{
		Name:     "fireworks",
		Hosts:    []string{"api.fireworks.ai"},
		Thoughts: ThoughtsPlain,
		Source:   "docs.fireworks.ai/guides/reasoning",
	},
	{
		Name:     "github",
		Hosts:    []string{"models.github.ai", "models.inference.ai.azure.com"},
		Thoughts: ThoughtsNever,
		Source:   "docs.github.com/en/rest/models/inference",
	},
	{
		Name:     "qwen",
		Hosts:    []string{"dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"},
		Thoughts: ThoughtsNever,
		Effort:   EffortBudget,
		Source:   "help.aliyun.com/zh/model-studio/deep-thinking; BerriAI/litellm#40720, QwenLM/Qwen-Agent#941",
	},
	{
		Name:     "zai",
		Hosts:    []string{"api.z.ai", "open.bigmodel.cn"},
		Thoughts: ThoughtsPlain,
		Effort:   EffortSwitch,
		Source:   "docs.z.ai/guides/capabilities/thinking-mode",
	},
	{
		Name:     "minimax",
		Hosts:    []string{"api.minimax.io", "api.minimaxi.com"},
		Thoughts: ThoughtsNever,
		Echo:     []string{"reasoning_details"},
		Body:     map[string]any{"reasoning_split": true},
		Source:   "platform.minimax.io/docs/guides/text-m2-function-call; vellum-ai/vellum-assistant#34556",
	},
	{Name: "vllm", Thoughts: ThoughtsPlain, Source: "docs.vllm.ai/en/latest/features/reasoning_outputs"},
	{Name: "sglang", Thoughts: ThoughtsPlain, Source: "docs.sglang.io/advanced_features/separate_reasoning"},
	{Name: "llama.cpp", Thoughts: ThoughtsPlain, Source: "github.com/ggml-org/llama.cpp/tree/master/tools/server"},
	{Name: "lmstudio", Thoughts: ThoughtsPlain, Source: "lmstudio.ai/docs/developer/openai-compat"},
	{
		Name:     "litellm",
		Thoughts: ThoughtsPlain,
		Echo:     []string{"thinking_blocks"},
		Source:   "docs.litellm.ai/docs/reasoning_content",
	},
}

// ListProfiles returns the profiles of the servers that raddle knows.
func ListProfiles() []Profile { return slices.Clone(profiles) }

// FindProfile returns the profile with a name.
func FindProfile(name string) (Profile, bool) {
	i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return profiles[i], true
}

// ProfileAt returns the profile of the server at a host. That of an unknown server has only plain rules.
func ProfileAt(host string) Profile {
	for _, p := range profiles {
		for _, end := range p.Hosts {
			if host == end || strings.HasSuffix(host, "."+strings.TrimPrefix(end, ".")) || strings.HasPrefix(end, ".") && strings.HasSuffix(host, end) {
				return p
			}
		}
	}
	return Profile{}
}
