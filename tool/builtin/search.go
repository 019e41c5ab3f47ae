package builtin

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"raddle.dev/tool"
)

var queryParam = param{name: "query", required: true, about: "What to search for"}

const (
	wikipediaBase  = "https://en.wikipedia.org"
	arxivBase      = "https://export.arxiv.org"
	wolframBase    = "https://api.wolframalpha.com"
	perplexityBase = "https://api.perplexity.ai"
	tavilyBase     = "https://api.tavily.com"
)

var searchTools = []definition{
	searchDefinition("search_wikipedia", "Get the introduction of the Wikipedia article that fits best.", wikipediaBase, searchWikipedia),
	searchDefinition("search_arxiv", "Search arXiv for papers; the answer is an Atom feed.", arxivBase, searchArxiv),
	searchDefinition("search_wolframalpha", "Ask Wolfram Alpha, for calculations and facts.", wolframBase, searchWolfram),
	searchDefinition("web_search_perplexity", "Search the web with Perplexity, and get an answer.", perplexityBase, searchPerplexity),
	searchDefinition("web_search_tavily", "Search the web with Tavily, and get an answer.", tavilyBase, searchTavily),
}

func searchDefinition(name, about, base string, run func(context.Context, Host, arguments) (tool.Result, error)) definition {
	return definition{
		name:     name,
		about:    about,
		effect:   tool.ReadOnly,
		parallel: true,
		params:   []param{queryParam},
		touches:  serviceTouches(name, base),
		run:      run,
	}
}

func searchWikipedia(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	var answer struct {
		Query struct {
			Pages []struct{ Title, Extract string }
		}
	}
	failure, bad, err := h.askJSON(ctx, request{
		tool: "search_wikipedia",
		base: wikipediaBase,
		path: "/w/api.php",
		query: url.Values{
			"action": {"query"}, "format": {"json"}, "formatversion": {"2"}, "generator": {"search"}, "gsrlimit": {"1"}, "gsrsearch": {a["query"]},
			"prop": {"extracts"}, "exintro": {"1"}, "explaintext": {"1"}, "redirects": {"1"},
		},
	}, &answer)
	if bad || err != nil {
		return failure, err
	}
	if len(answer.Query.Pages) == 0 {
		return tool.FailedResult("Wikipedia has nothing about %s", a["query"]), nil
	}
	page := answer.Query.Pages[0]
	return tool.JSONResult(map[string]string{"title": page.Title, "output": h.clipOutput(page.Extract)}), nil
}

func searchArxiv(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	most := 3
	if n, err := strconv.Atoi(h.envValue("ARXIV_MAX_RESULTS")); err == nil && n > 0 {
		most = n
	}
	return h.askText(ctx, request{
		tool: "search_arxiv",
		base: arxivBase,
		path: "/api/query",
		query: url.Values{
			"search_query": {"all:" + a["query"]}, "max_results": {strconv.Itoa(most)},
		},
	})
}

func searchWolfram(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	key := h.envValue("WOLFRAM_API_ID")
	if key == "" {
		return noKey("WOLFRAM_API_ID")
	}
	var answer struct {
		QueryResult struct {
			Pods []struct {
				Title   string
				Subpods []struct{ Plaintext string }
			}
		}
	}
	failure, bad, err := h.askJSON(ctx, request{
		tool: "search_wolframalpha",
		base: wolframBase,
		path: "/v2/query",
		query: url.Values{
			"appid": {key}, "input": {a["query"]}, "output": {"json"}, "format": {"plaintext"},
		},
	}, &answer)
	if bad || err != nil {
		return failure, err
	}
	type pod struct {
		Title string   `json:"title"`
		Texts []string `json:"texts"`
	}
	pods := []pod{}
	for _, p := range answer.QueryResult.Pods {
		found := pod{Title: p.Title}
		for _, s := range p.Subpods {
			if s.Plaintext != "" {
				found.Texts = append(found.Texts, s.Plaintext)
			}
		}
		if len(found.Texts) > 0 {
			pods = append(pods, found)
		}
	}
	return tool.JSONResult(pods), nil
}

func searchPerplexity(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	key := h.envValue("PERPLEXITY_API_KEY")
	if key == "" {
		return noKey("PERPLEXITY_API_KEY")
	}
	model := h.envValue("PERPLEXITY_WEB_SEARCH_MODEL")
	if model == "" {
		model = "sonar"
	}
	var answer struct {
		Choices   []struct{ Message struct{ Content string } }
		Citations []string
	}
	failure, bad, err := h.askJSON(ctx, request{
		tool:   "web_search_perplexity",
		base:   perplexityBase,
		path:   "/chat/completions",
		kind:   "application/json",
		header: map[string]string{"Authorization": "Bearer " + key},
		body:   jsonBody(map[string]any{"model": model, "messages": []map[string]string{{"role": "user", "content": a["query"]}}}),
	}, &answer)
	if bad || err != nil {
		return failure, err
	}
	if len(answer.Choices) == 0 {
		return tool.FailedResult("Perplexity has no answer"), nil
	}
	text := answer.Choices[0].Message.Content
	for i, c := range answer.Citations {
		text += "\n[" + strconv.Itoa(i+1) + "] " + c
	}
	return tool.TextResult(h.clipOutput(text)), nil
}

func searchTavily(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	key := h.envValue("TAVILY_API_KEY")
	if key == "" {
		return noKey("TAVILY_API_KEY")
	}
	var answer struct {
		Answer  string
		Results []struct{ Title, URL, Content string }
	}
	failure, bad, err := h.askJSON(ctx, request{
		tool:   "web_search_tavily",
		base:   tavilyBase,
		path:   "/search",
		kind:   "application/json",
		header: map[string]string{"Authorization": "Bearer " + key},
		body:   jsonBody(map[string]any{"query": a["query"], "include_answer": true}),
	}, &answer)
	if bad || err != nil {
		return failure, err
	}
	var b strings.Builder
	b.WriteString(answer.Answer)
	for _, r := range answer.Results {
		b.WriteString("\n- " + r.Title + " " + r.URL)
	}
	return tool.TextResult(h.clipOutput(strings.TrimSpace(b.String()))), nil
}

// askJSON reads the answer of a service into v.
func (h Host) askJSON(ctx context.Context, r request, v any) (failure tool.Result, bad bool, err error) {
	body, failure, bad, err := h.askService(ctx, r)
	if bad || err != nil {
		return failure, bad, err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return tool.FailedResult("the answer of the service is not JSON in the expected form: %v", err), true, nil
	}
	return tool.Result{}, false, nil
}

func jsonBody(v any) string {
	text, _ := json.Marshal(v) // texts, lists and maps of them always have a JSON form
	return string(text)
}

func noKey(name string) (tool.Result, error) {
	return tool.FailedResult("the environment variable %s, which holds the key of the service, is not set", name), nil
}
