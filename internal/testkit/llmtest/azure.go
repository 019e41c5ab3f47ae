package llmtest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Azure is OpenAI's Responses API at Azure, at the address without versions. It is [OpenAIResponses] with the header of
// Azure:
//
//   - A key in Authorization, and requests without one: "Access denied due to invalid subscription key or wrong API endpoint"
//     (learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle).
//   - Names of models that are no deployment: "DeploymentNotFound".
//   - Prompts with the word [AzureFilter]: the error of the content filter (learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter).
func Azure() Vendor {
	v := OpenAIResponses()
	v.Name = "Azure"
	inner := v.Check
	v.checkRequest = func(r *http.Request, body []byte) (int, string) {
		var asked struct{ Model string }
		switch {
		case r.URL.Path != "/openai/v1/responses":
			return http.StatusNotFound, "Resource not found"
		case r.Header.Get("Api-Key") != AzureKey || r.Header.Get("Authorization") != "":
			return http.StatusUnauthorized, "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource."
		case json.Unmarshal(body, &asked) != nil || asked.Model != AzureDeployment:
			return http.StatusNotFound, "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again."
		case strings.Contains(string(body), AzureFilter):
			return http.StatusBadRequest, "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry."
		}
		if err := inner(body); err != nil {
			return http.StatusBadRequest, err.Error()
		}
		return 0, ""
	}
	v.refuse = refuseAzure
	return v
}

// The key and the deployment that [Azure] takes, and a word that its filter refuses.
const (
	AzureKey        = "0123456789abcdef0123456789abcdef"
	AzureDeployment = "my-deployment"
	AzureFilter     = "violence-0001"
)

// refuseAzure returns the document of a refusal. That of the content filter has its own code.
func refuseAzure(message string) string {
	code := "null"
	switch {
	case strings.Contains(message, "content management policy"):
		code = `"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"violence":{"filtered":true,"severity":"medium"}}}`
	case strings.Contains(message, "deployment"):
		code = `"DeploymentNotFound"`
	case strings.Contains(message, "Access denied"):
		code = `"401"`
	}
	return `{"error":{"message":` + quoteJSON(message) + `,"type":null,"param":"prompt","code":` + code + `}}`
}
