package sdkcheck

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"raddle.dev/internal/testkit/clienttest"
)

// TestServedCompletions reads what raddle serves with OpenAI's library: it must know every field, except for raddle's own.
func TestServedCompletions(t *testing.T) {
	server := clienttest.NewHome(t).Serve(t)
	client := openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey(server.Token), option.WithMaxRetries(0))
	params := func(model, text string) openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
	}

	models, err := client.Models.List(t.Context())
	if err != nil || !slices.ContainsFunc(models.Data, func(m openai.Model) bool {
		return m.ID == "triage" && m.OwnedBy == "raddle" && len(m.JSON.ExtraFields) == 0
	}) {
		t.Errorf("models: %+v, %v", models, err)
	}

	var header *http.Response
	asked, err := client.Chat.Completions.New(t.Context(), params("triage", "The checkout is slow."), option.WithResponseInto(&header))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"raddle"}, slices.Collect(maps.Keys(asked.JSON.ExtraFields))); diff != "" {
		t.Errorf("fields of a completion that the library does not know (-want +got):\n%s", diff)
	}
	message := asked.Choices[0].Message
	if len(message.JSON.ExtraFields) != 0 || len(asked.Choices[0].JSON.ExtraFields) != 0 || len(asked.Usage.JSON.ExtraFields) != 0 || asked.Usage.TotalTokens != 268 || message.Content == "" {
		t.Errorf("%s", asked.RawJSON())
	}
	answered, err := client.Chat.Completions.New(t.Context(), params("triage", "no"), option.WithHeader("X-Raddle-Run", header.Header.Get("X-Raddle-Run")))
	if err != nil || answered.Choices[0].FinishReason != "stop" || answered.Choices[0].Message.Content[:9] != "Not paged" {
		t.Errorf("%+v, %v", answered, err)
	}

	streamed := params("assistant", "Where is order 1007?")
	streamed.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(t.Context(), streamed)
	whole := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		chunk := stream.Current()
		for name := range chunk.JSON.ExtraFields {
			if name != "raddle" {
				t.Errorf("the library does not know the field %q of a chunk", name)
			}
		}
		if !whole.AddChunk(chunk) {
			t.Errorf("the library does not add the chunk %s", chunk.RawJSON())
		}
	}
	if stream.Err() != nil || whole.Usage.TotalTokens != 1515 || whole.Choices[0].FinishReason != "stop" || len(whole.Choices[0].Message.Content) < 100 {
		t.Errorf("%+v, %v", whole.ChatCompletion, stream.Err())
	}

	var wrong *openai.Error
	if _, err := client.Chat.Completions.New(t.Context(), params("missing", "x")); !errors.As(err, &wrong) || wrong.StatusCode != 404 || wrong.Code != "model_not_found" || wrong.Param != "model" ||
		wrong.Type != "invalid_request_error" || wrong.Message == "" {
		t.Errorf("%v", err)
	}
}
