package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// These are the names of the semantic conventions for generative AI and for MCP, as of
// September 2026 (they have no releases yet), and the names of raddle.
const (
	attrOperation    = attribute.Key("gen_ai.operation.name")
	attrProvider     = attribute.Key("gen_ai.provider.name")
	attrConversation = attribute.Key("gen_ai.conversation.id")
	attrAgent        = attribute.Key("gen_ai.agent.name")
	attrAgentID      = attribute.Key("gen_ai.agent.id")
	attrWorkflow     = attribute.Key("gen_ai.workflow.name")
	attrOutputType   = attribute.Key("gen_ai.output.type")

	attrRequestModel  = attribute.Key("gen_ai.request.model")
	attrStream        = attribute.Key("gen_ai.request.stream")
	attrMaxTokens     = attribute.Key("gen_ai.request.max_tokens")
	attrTemperature   = attribute.Key("gen_ai.request.temperature")
	attrTopP          = attribute.Key("gen_ai.request.top_p")
	attrTopK          = attribute.Key("gen_ai.request.top_k")
	attrStops         = attribute.Key("gen_ai.request.stop_sequences")
	attrResponseModel = attribute.Key("gen_ai.response.model")
	attrResponseID    = attribute.Key("gen_ai.response.id")
	attrFinishReasons = attribute.Key("gen_ai.response.finish_reasons")
	attrFirstChunk    = attribute.Key("gen_ai.response.time_to_first_chunk")
	attrInputTokens   = attribute.Key("gen_ai.usage.input_tokens")
	attrOutputTokens  = attribute.Key("gen_ai.usage.output_tokens")
	attrCachedTokens  = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	attrWrittenTokens = attribute.Key("gen_ai.usage.cache_creation.input_tokens")
	attrReasonTokens  = attribute.Key("gen_ai.usage.reasoning.output_tokens")
	attrTokenType     = attribute.Key("gen_ai.token.type")

	attrInstructions = attribute.Key("gen_ai.system_instructions")
	attrInput        = attribute.Key("gen_ai.input.messages")
	attrOutput       = attribute.Key("gen_ai.output.messages")

	attrTool       = attribute.Key("gen_ai.tool.name")
	attrToolType   = attribute.Key("gen_ai.tool.type")
	attrToolText   = attribute.Key("gen_ai.tool.description")
	attrCallID     = attribute.Key("gen_ai.tool.call.id")
	attrCallArgs   = attribute.Key("gen_ai.tool.call.arguments")
	attrCallResult = attribute.Key("gen_ai.tool.call.result")
	attrMCPMethod  = attribute.Key("mcp.method.name")

	attrDimensions = attribute.Key("gen_ai.embeddings.dimension.count")
	attrDataSource = attribute.Key("gen_ai.data_source.id")
	attrQuery      = attribute.Key("gen_ai.retrieval.query.text")
	attrDocuments  = attribute.Key("gen_ai.retrieval.documents")

	attrErrorType = attribute.Key("error.type")
	attrStatus    = attribute.Key("http.response.status_code")

	attrRun         = attribute.Key("raddle.run.id")
	attrThread      = attribute.Key("raddle.thread.id")
	attrRunStatus   = attribute.Key("raddle.run.status")
	attrResumed     = attribute.Key("raddle.run.resumed")
	attrSteps       = attribute.Key("raddle.run.steps")
	attrCost        = attribute.Key("raddle.cost_usd")
	attrPath        = attribute.Key("raddle.path")
	attrStep        = attribute.Key("raddle.step")
	attrNode        = attribute.Key("raddle.node")
	attrNodes       = attribute.Key("raddle.nodes")
	attrKeys        = attribute.Key("raddle.keys")
	attrKind        = attribute.Key("raddle.kind")
	attrTask        = attribute.Key("raddle.task.id")
	attrAttempts    = attribute.Key("raddle.task.attempts")
	attrWaiting     = attribute.Key("raddle.waiting")
	attrCached      = attribute.Key("raddle.cached")
	attrQuestion    = attribute.Key("raddle.question.id")
	attrPrompt      = attribute.Key("raddle.question.prompt")
	attrRefused     = attribute.Key("raddle.question.refused")
	attrAhead       = attribute.Key("raddle.question.answered_ahead")
	attrAgentStatus = attribute.Key("raddle.agent.status")
	attrTexts       = attribute.Key("raddle.embeddings.texts.count")
	attrHits        = attribute.Key("raddle.retrieval.documents.count")
	eventAsked      = "raddle.question.asked"
	eventRetry      = "raddle.task.retry"
	eventToolAsked  = "raddle.tool.question"
)

// These are the operations of the conventions.
const (
	operationChat       = "chat"
	operationAgent      = "invoke_agent"
	operationWorkflow   = "invoke_workflow"
	operationTool       = "execute_tool"
	operationRetrieval  = "retrieval"
	operationEmbeddings = "embeddings"
)

// otherError is the value of error.type for an error that has no better name.
const otherError = "_OTHER"

// providerNames are the providers whose names in the conventions differ from those of raddle's clients.
var providerNames = map[string]string{
	"gemini": "gcp.gemini", "vertexai": "gcp.vertex_ai", "vertex": "gcp.vertex_ai", "bedrock": "aws.bedrock", "azure-openai": "azure.ai.openai",
	"mistral": "mistral_ai", "xai": "x_ai", "moonshot": "moonshot_ai",
}

// splitModelID returns the name of a model's provider, and the model's own name.
func splitModelID(id string) (provider, model string) {
	provider, model, found := strings.Cut(id, ":")
	if !found {
		provider = otherError
		model = id
	}
	if name := providerNames[provider]; name != "" {
		provider = name
	}
	return provider, model
}
