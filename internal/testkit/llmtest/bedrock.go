package llmtest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Bedrock is the Converse API of Amazon Bedrock in [AWSRegion], for a model of Anthropic, and for another one if the
// path of a request names it. It takes requests that are signed with [AWSKeyID], [AWSSecret] and [AWSToken], or have
// [BedrockKey]. What it refuses:
//
//   - Signatures that do not cover the request, credentials of others, and times that are off by more than five minutes (AWS's reference
//     of Signature Version 4; "Signature expired: … is now earlier than …").
//   - Members that the API does not have (docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html).
//   - Calls in a conversation without toolConfig: "The toolConfig field must be defined when using toolUse and toolResult content blocks"
//     (vxcontrol/pentagi#196).
//   - Results without calls of the turn before: "The number of toolResult blocks exceeds the number of toolUse blocks of previous turn"
//     (pydantic/pydantic-ai#2327), and calls without results (langchain-ai/langchain-aws#451).
//   - Results without content whose status is error (aws-samples/sample-multi-agent-orchestration-chat-on-agentcore#15).
//   - Ids of calls with other characters than [a-zA-Z0-9_.:-], or more than 64 (run-llama/llama_index#22775).
//   - Calls or their results together with anything else in a turn of a Llama model (strands-agents/harness-sdk#1223,
//     quarkiverse/quarkus-langchain4j#1983).
//   - Names of documents with other characters than letters, digits, single blanks, dashes and brackets (vercel/ai#20365), and the same name twice
//     (maximhq/bifrost#7003).
//   - Turns of reasoning only: "This model does not support assistant message prefill" (NousResearch/hermes-agent#105780).
//   - Marks for the cache among the tools of Nova (danny-avila/LibreChat#13838), after a document (pizza-bot-app/pizza-bot#6), for
//     models without a cache, and more than four.
//   - Temperatures when a model of Anthropic thinks, and limits when Nova thinks hard (vercel/ai, packages/amazon-bedrock).
//
// Reasoning of others, whose signature it does not know, is refused as Anthropic does it.
func Bedrock() Vendor {
	return Vendor{Name: "Bedrock", Check: func(body []byte) error { return checkBedrock("anthropic.claude-x", body) }, admit: admitBedrock, checkRequest: checkBedrockRequest,
		stream: streamBedrock, media: "application/vnd.amazon.eventstream", refuse: func(m string) string { return `{"message":` + quoteJSON(m) + `}` }, refusal: refuseBedrock}
}

// BedrockLlama is the same for a model of Meta, which refuses more and does not think.
func BedrockLlama() Vendor {
	v := Bedrock()
	v.Name = "Bedrock Llama"
	v.Check = func(body []byte) error { return checkBedrock("meta.llama-x", body) }
	v.stream = func(t Turn) string {
		t.Thought = ""
		return streamBedrock(t)
	}
	return v
}

// refuseBedrock writes the name of the exception into a header: the body has none.
func refuseBedrock(header http.Header, status int, reason string) {
	name := map[int]string{
		http.StatusForbidden: "AccessDeniedException", http.StatusTooManyRequests: "ThrottlingException", http.StatusNotFound: "ResourceNotFoundException",
		http.StatusServiceUnavailable: "ServiceUnavailableException", http.StatusInternalServerError: "InternalServerException",
		http.StatusFailedDependency: "ModelErrorException", http.StatusRequestTimeout: "ModelTimeoutException",
	}[status]
	switch {
	case strings.Contains(reason, "signature") || strings.HasPrefix(reason, "Signature"):
		name = "InvalidSignatureException"
	case strings.Contains(reason, "security token included in the request is expired"):
		name = "ExpiredTokenException"
	case strings.Contains(reason, "security token"):
		name = "UnrecognizedClientException"
	case name == "":
		name = "ValidationException"
	}
	header.Set("X-Amzn-Errortype", name+":http://internal.amazon.com/coral/com.amazon.bedrock/")
}

// admitBedrock judges the address of a request.
func admitBedrock(r *http.Request) (int, string) {
	if r.Method != http.MethodPost || bedrockModel(r) == "" {
		return http.StatusNotFound, "Unable to determine service/operation name to be authorized"
	}
	if media := r.Header.Get("Content-Type"); media != "application/json" {
		return http.StatusUnsupportedMediaType, "the content type is " + media
	}
	return 0, ""
}

// bedrockModel returns the model that the path of a request names, "" if it names none.
func bedrockModel(r *http.Request) string {
	rest, isModel := strings.CutPrefix(r.URL.EscapedPath(), "/model/")
	id, isStream := strings.CutSuffix(rest, "/converse-stream")
	if !isModel || !isStream || strings.ContainsAny(id, "/:") {
		return ""
	}
	name, err := url.PathUnescape(id)
	if err != nil {
		return ""
	}
	return name
}

// checkBedrockRequest judges a request by its model and its signature.
func checkBedrockRequest(r *http.Request, body []byte) (int, string) {
	if reason := checkAuthorization(r, body); reason != "" {
		return http.StatusForbidden, reason
	}
	if err := checkBedrock(bedrockModel(r), body); err != nil {
		return http.StatusBadRequest, err.Error()
	}
	return 0, ""
}

type bedrockRequest struct {
	System          []bedrockBlock `json:"system"`
	Messages        []bedrockMessage
	InferenceConfig struct {
		MaxTokens     *int     `json:"maxTokens"`
		Temperature   *float64 `json:"temperature"`
		TopP          *float64 `json:"topP"`
		StopSequences []string `json:"stopSequences"`
	} `json:"inferenceConfig"`
	ToolConfig *struct {
		Tools      []bedrockTool  `json:"tools"`
		ToolChoice map[string]any `json:"toolChoice"`
	} `json:"toolConfig"`
	Additional map[string]any `json:"additionalModelRequestFields"`
}

type bedrockTool struct {
	ToolSpec *struct {
		Name        string  `json:"name"`
		Description *string `json:"description"`
		InputSchema struct {
			JSON json.RawMessage `json:"json"`
		} `json:"inputSchema"`
	} `json:"toolSpec"`
	CachePoint *bedrockMark `json:"cachePoint"`
}

type bedrockMark struct {
	Type string `json:"type"`
}

type bedrockMessage struct {
	Role    string         `json:"role"`
	Content []bedrockBlock `json:"content"`
}

type bedrockBlock struct {
	Text      *string       `json:"text"`
	Image     *bedrockMedia `json:"image"`
	Document  *bedrockMedia `json:"document"`
	Reasoning *struct {
		Text *struct {
			Text      string `json:"text"`
			Signature string `json:"signature"`
		} `json:"reasoningText"`
		Redacted []byte `json:"redactedContent"`
	} `json:"reasoningContent"`
	ToolUse *struct {
		ID    string          `json:"toolUseId"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"toolUse"`
	ToolResult *struct {
		ID      string         `json:"toolUseId"`
		Content []bedrockBlock `json:"content"`
		Status  string         `json:"status"`
	} `json:"toolResult"`
	CachePoint *bedrockMark `json:"cachePoint"`
}

type bedrockMedia struct {
	Format string `json:"format"`
	Name   string `json:"name"`
	Source struct {
		Bytes []byte `json:"bytes"`
	} `json:"source"`
}

// A bedrockCheck is the check of one request.
type bedrockCheck struct {
	model     string
	marks     int
	documents []string // names so far
	calls     bool     // the conversation has calls
}

// checkBedrock requires users and assistants to take turns, and the results of all calls in the next turn.
func checkBedrock(model string, body []byte) error {
	var r bedrockRequest
	strict := json.NewDecoder(bytes.NewReader(body))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&r); err != nil {
		return vendorErrorf("Malformed input request: %v", err)
	}
	c := &bedrockCheck{model: model}
	if len(r.Messages) == 0 || r.Messages[0].Role != "user" {
		return vendorError("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
	}
	if err := c.checkBlocks("system", r.System); err != nil {
		return err
	}
	if err := c.checkMessages(r.Messages); err != nil {
		return err
	}
	if err := c.checkTools(r); err != nil {
		return err
	}
	thinking, _ := r.Additional["thinking"].(map[string]any)
	thinks := thinking["type"] == "enabled" || thinking["type"] == "adaptive"
	switch {
	case c.marks > 4:
		return vendorErrorf("A maximum of 4 blocks with cache_control may be provided. Found %d.", c.marks)
	case thinks && (r.InferenceConfig.Temperature != nil && *r.InferenceConfig.Temperature != 1 || r.InferenceConfig.TopP != nil):
		return vendorError("`temperature` may only be set to 1 when thinking is enabled")
	case thinks && !strings.Contains(model, "anthropic"):
		return vendorError("Malformed input request: extraneous key [thinking] is not permitted")
	case r.Additional["reasoning_effort"] != nil && !slices.Contains([]any{"low", "medium", "high"}, r.Additional["reasoning_effort"]):
		return vendorErrorf("reasoning_effort: unknown variant `%v`, expected one of `high`, `low`, `medium`", r.Additional["reasoning_effort"])
	}
	if nova, is := r.Additional["reasoningConfig"].(map[string]any); is && nova["maxReasoningEffort"] == "high" && (r.InferenceConfig.MaxTokens != nil || r.InferenceConfig.Temperature != nil) {
		return vendorError("When maxReasoningEffort is high, maxTokens, temperature and topP must be unset")
	}
	if budget, is := thinking["budget_tokens"].(float64); is && (r.InferenceConfig.MaxTokens == nil || float64(*r.InferenceConfig.MaxTokens) <= budget) {
		return vendorError("`max_tokens` must be greater than `thinking.budget_tokens`")
	}
	return nil
}

func (c *bedrockCheck) checkMessages(list []bedrockMessage) error {
	var open []string
	used := map[string]bool{}
	for i, m := range list {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			return vendorError("A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.")
		}
		if err := c.checkBlocks(m.Role, m.Content); err != nil {
			return vendorErrorf("messages.%d: %v", i, err)
		}
		if err := m.checkResults(open); err != nil {
			return vendorErrorf("messages.%d.content: %v", i, err)
		}
		open = nil
		for _, b := range m.Content {
			if b.ToolUse == nil {
				continue
			}
			if used[b.ToolUse.ID] {
				return vendorErrorf("messages.%d: `tool_use` ids must be unique", i)
			}
			used[b.ToolUse.ID] = true
			open = append(open, b.ToolUse.ID)
		}
	}
	if len(open) > 0 || list[len(list)-1].Role != "user" {
		return vendorError("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	return nil
}

// checkResults returns an error unless the message has one result for each open call, before anything else.
func (m bedrockMessage) checkResults(open []string) error {
	results := 0
	for i, b := range m.Content {
		if b.ToolResult == nil {
			continue
		}
		if !slices.Contains(open, b.ToolResult.ID) || results >= len(open) {
			return vendorError("The number of toolResult blocks at messages.content exceeds the number of toolUse blocks of previous turn.")
		}
		if results != i {
			return vendorErrorf("Did not find %d `tool_result` block(s) at the beginning of this message", len(open))
		}
		results++
	}
	if results < len(open) {
		return vendorErrorf("Expected toolResult blocks at messages.content for the following Ids: %s", strings.Join(open, ", "))
	}
	return nil
}

// documentName matches what Bedrock takes as the name of a document.
var documentName = regexp.MustCompile(`^[a-zA-Z0-9\-()\[\]]+( [a-zA-Z0-9\-()\[\]]+)*$`)

// checkBlocks judges the content of a message, of the instructions ("system") or of a result ("result").
func (c *bedrockCheck) checkBlocks(role string, list []bedrockBlock) error {
	if len(list) == 0 && role != "system" {
		return vendorErrorf("The content field in the Message object is empty. Add a ContentBlock object to the content field and try again.")
	}
	tools := 0
	others := 0
	texts := 0
	documents := 0
	reasoning := 0
	for i, b := range list {
		if n := b.count(); n != 1 {
			return vendorErrorf("content.%d has %d members, and must have one", i, n)
		}
		switch {
		case b.Text != nil:
			if strings.TrimSpace(*b.Text) == "" {
				return vendorErrorf("The text field in the ContentBlock object at content.%d is blank. Add text to the text field, and try again.", i)
			}
			texts++
			others++
		case b.CachePoint != nil:
			if err := c.checkMark(*b.CachePoint); err != nil {
				return err
			}
			if i == 0 || list[i-1].Document != nil || role == "result" {
				return vendorErrorf("content.%d.type: Field required", i)
			}
		case role == "system":
			return vendorErrorf("system.%d may have text only", i)
		case b.Image != nil:
			if role == "assistant" || !slices.Contains([]string{"png", "jpeg", "gif", "webp"}, b.Image.Format) || len(b.Image.Source.Bytes) == 0 {
				return vendorErrorf("the image at content.%d is not valid", i)
			}
			others++
		case b.Document != nil:
			if err := c.checkDocument(role, *b.Document); err != nil {
				return err
			}
			documents++
			others++
		case b.Reasoning != nil:
			if err := c.checkReasoning(role, b); err != nil {
				return err
			}
			reasoning++
		case b.ToolUse != nil:
			if role != "assistant" || !isCallID(b.ToolUse.ID) || !isPlainName(b.ToolUse.Name, 64) || !isJSONObject(b.ToolUse.Input) {
				return vendorErrorf("the toolUse at content.%d is not valid", i)
			}
			tools++
			c.calls = true
		case b.ToolResult != nil:
			if err := c.checkResult(role, i, b); err != nil {
				return err
			}
			tools++
		}
	}
	switch {
	case documents > 0 && texts == 0 && role == "user":
		return vendorError("A text block is required when the content has documents")
	case tools > 0 && others > 0 && strings.HasPrefix(c.model, "meta."):
		return vendorError("Conversation blocks and tool use blocks or tool result blocks cannot be provided in the same turn.")
	case reasoning > 0 && tools+others == 0:
		return vendorError("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	return nil
}

// count returns how many members of a block are set.
func (b bedrockBlock) count() int {
	n := 0
	for _, set := range []bool{b.Text != nil, b.Image != nil, b.Document != nil, b.Reasoning != nil, b.ToolUse != nil, b.ToolResult != nil, b.CachePoint != nil} {
		if set {
			n++
		}
	}
	return n
}

func (c *bedrockCheck) checkMark(mark bedrockMark) error {
	c.marks++
	if mark.Type != "default" || !strings.Contains(c.model, "claude") && !strings.Contains(c.model, "nova") || strings.Contains(c.model, "claude-3-haiku") {
		return vendorError("You invoked an unsupported model or your request did not allow prompt caching. See the documentation for more information.")
	}
	return nil
}

func (c *bedrockCheck) checkDocument(role string, d bedrockMedia) error {
	switch {
	case role == "assistant" || len(d.Source.Bytes) == 0 || !slices.Contains([]string{"pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"}, d.Format):
		return vendorError("the document is not valid")
	case len(d.Name) > 200 || !documentName.MatchString(d.Name):
		return vendorError("The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets. The name can't contain more than one consecutive whitespace character.")
	case slices.Contains(c.documents, d.Name):
		return vendorError("Messages can't contain duplicate document names. Rename the document and retry your request.")
	}
	c.documents = append(c.documents, d.Name)
	return nil
}

func (c *bedrockCheck) checkReasoning(role string, b bedrockBlock) error {
	text := b.Reasoning.Text
	redacted := b.Reasoning.Redacted
	switch {
	case role != "assistant" || (text == nil) == (redacted == nil):
		return vendorError("User messages cannot contain reasoning content. Please remove the reasoning content and try again.")
	case !strings.Contains(c.model, "claude"):
		return vendorError("This model doesn't support the reasoningContent field")
	case text != nil && text.Signature != "seal of "+text.Text, redacted != nil && string(redacted) != "hidden":
		return vendorError("The model returned the following errors: Invalid `signature` in `thinking` block")
	}
	return nil
}

func (c *bedrockCheck) checkResult(role string, i int, b bedrockBlock) error {
	r := b.ToolResult
	switch {
	case role != "user" || !isCallID(r.ID):
		return vendorErrorf("the toolResult at content.%d is not valid", i)
	case len(r.Content) == 0:
		return vendorErrorf("The content field at content.%d.toolResult cannot be empty when status value is error.", i)
	case r.Status != "" && strings.HasPrefix(c.model, "meta."):
		return vendorError("This model doesn't support the status field. Remove status and try again.")
	}
	return c.checkBlocks("result", r.Content)
}

// checkTools judges the tools, which a conversation with calls must have.
func (c *bedrockCheck) checkTools(r bedrockRequest) error {
	if r.ToolConfig == nil {
		if c.calls {
			return vendorError("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
		}
		return nil
	}
	if len(r.ToolConfig.Tools) == 0 {
		return vendorError("The toolConfig.tools field must have at least one member")
	}
	if r.ToolConfig.ToolChoice != nil && strings.HasPrefix(c.model, "meta.") {
		return vendorError("This model doesn't support the toolConfig.toolChoice.auto field. Remove toolConfig.toolChoice.auto and try again.")
	}
	var names []string
	for i, t := range r.ToolConfig.Tools {
		switch {
		case (t.ToolSpec == nil) == (t.CachePoint == nil):
			return vendorErrorf("toolConfig.tools.%d must have one member", i)
		case t.CachePoint != nil && strings.Contains(c.model, "nova"):
			return vendorErrorf("Malformed input request: #/toolConfig/tools/%d: extraneous key [cachePoint] is not permitted, please reformat your input and try again.", i)
		case t.CachePoint != nil:
			if err := c.checkMark(*t.CachePoint); err != nil {
				return err
			}
		case !isPlainName(t.ToolSpec.Name, 64) || slices.Contains(names, t.ToolSpec.Name) || !isJSONObject(t.ToolSpec.InputSchema.JSON):
			return vendorErrorf("toolConfig.tools.%d.toolSpec is not valid", i)
		case t.ToolSpec.Description != nil && *t.ToolSpec.Description == "":
			return vendorErrorf("toolConfig.tools.%d.toolSpec.description: min length: 1", i)
		default:
			names = append(names, t.ToolSpec.Name)
		}
	}
	return nil
}

// isCallID reports whether Bedrock takes the id of a call.
func isCallID(id string) bool {
	return len(id) <= 64 && isPlainName(strings.NewReplacer(".", "", ":", "").Replace(id), 64)
}

// streamBedrock sends a turn in frames. Of the arguments of a call it sends one half after the other.
func streamBedrock(t Turn) string {
	var b strings.Builder
	send := func(name, payload string) { b.WriteString(Frame("event", name, payload)) }
	n := 0
	block := func(start string, deltas ...string) {
		if start != "" {
			send("contentBlockStart", fmt.Sprintf(`{"start":%s,"contentBlockIndex":%d,"p":"abc"}`, start, n))
		}
		for _, d := range deltas {
			send("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":%s,"p":"abcdefgh"}`, n, d))
		}
		send("contentBlockStop", fmt.Sprintf(`{"contentBlockIndex":%d,"p":"ab"}`, n))
		n++
	}
	send("messageStart", `{"role":"assistant","p":"abcd"}`)
	if t.Thought != "" {
		block("", `{"reasoningContent":{"text":`+quoteJSON(t.Thought)+`}}`, `{"reasoningContent":{"signature":`+quoteJSON("seal of "+t.Thought)+`}}`)
		hidden := base64.StdEncoding.EncodeToString([]byte("hidden"))
		block("", `{"reasoningContent":{"redactedContent":"`+hidden+`"}}`)
	}
	if h := splitHalf(t.Text); t.Text != "" {
		block("", `{"text":`+quoteJSON(h[0])+`}`, `{"text":`+quoteJSON(h[1])+`}`)
	}
	for _, c := range t.Calls {
		h := splitHalf(c.Args)
		block(fmt.Sprintf(`{"toolUse":{"toolUseId":%q,"name":%q}}`, c.ID, c.Name), `{"toolUse":{"input":`+quoteJSON(h[0])+`}}`, `{"toolUse":{"input":`+quoteJSON(h[1])+`}}`)
	}
	stop := "end_turn"
	if len(t.Calls) > 0 {
		stop = "tool_use"
	}
	if t.Cut {
		stop = "max_tokens"
	}
	send("messageStop", `{"stopReason":"`+stop+`","p":"abcdef"}`)
	send("metadata", `{"metrics":{"latencyMs":7},"usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3,"cacheReadInputTokens":4,"cacheWriteInputTokens":5},"p":"a"}`)
	return b.String()
}

// Frame returns a frame of an event stream: an event or an exception with a payload of JSON.
func Frame(kind, name, payload string) string {
	var headers bytes.Buffer
	for _, h := range [][2]string{{":message-type", kind}, {":" + kind + "-type", name}, {":content-type", "application/json"}} {
		const textValue = 7
		headers.WriteByte(byte(len(h[0])))
		headers.WriteString(h[0])
		headers.WriteByte(textValue)
		headers.Write(binary.BigEndian.AppendUint16(nil, uint16(len(h[1]))))
		headers.WriteString(h[1])
	}
	const around = 16 // bytes of the lengths and the checksums
	frame := binary.BigEndian.AppendUint32(nil, uint32(around+headers.Len()+len(payload)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(headers.Len()))
	frame = binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
	frame = append(frame, headers.Bytes()...)
	frame = append(frame, payload...)
	return string(binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame)))
}
