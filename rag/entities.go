package rag

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"raddle.dev/llm"
)

// The values that apply if [Extraction] does not set them.
const (
	DefaultHops  = 1
	DefaultCalls = 4
)

// ChunkMark marks the place of the chunk in the prompt of an [Extraction].
const ChunkMark = "__CHUNK__"

// Extraction says how a build finds the entities of documents and the relations between them. The zero value finds
// none.
type Extraction struct {
	// Model is the chat model that is asked about each new chunk; empty: none, and the base has no entities.
	Model string
	// Prompt is what it is asked, with the chunk in place of [ChunkMark]; empty: a prompt of this package.
	Prompt string
	// Hops is how many relations a search follows from entity to entity; nil: [DefaultHops].
	Hops *int
	// Calls is how many chunks are asked about at the same time; zero: [DefaultCalls].
	Calls int
	// Open opens the model by name, before the first call of a build. It may be nil where no model is set.
	Open func(ctx context.Context, model string) (llm.Model, error)
	// Redact removes from a prompt the texts that the model must not see; nil: nothing is removed.
	Redact func(text string) string
}

// validateOptions returns an error if the extraction cannot work.
func (e *Extraction) validateOptions() error {
	var problems []error
	if e.Prompt != "" && !strings.Contains(e.Prompt, ChunkMark) {
		problems = append(problems, fmt.Errorf("extractor_prompt does not contain %s: the model would never see a chunk", ChunkMark))
	}
	if e.Hops != nil && *e.Hops < 0 {
		problems = append(problems, fmt.Errorf("graph_hops is %d: it must be at least 0", *e.Hops))
	}
	if e.Calls < 0 {
		problems = append(problems, fmt.Errorf("calls is %d: it must be at least 1", e.Calls))
	}
	return errors.Join(problems...)
}

// extractPrompt asks for what [readFacts] reads.
const extractPrompt = `Read the passage below and list what it is about, as data.

An entity is something that has a name of its own in the passage: a person, an organisation, a place, a product, an event, a document, a law, a
technical term. Use the name as the passage has it, in its fullest form, and one name for one thing. Leave out pronouns, dates, numbers and
general words. Types are PERSON, ORGANIZATION, LOCATION, PRODUCT, EVENT, DOCUMENT, CONCEPT, TECHNOLOGY or OTHER.

A relationship says how one entity of your list bears on another, as far as the passage says so. Its type is a verb or two, such as PART_OF or
WORKS_FOR. Its weight is how plainly the passage says it, from 0 to 1.

Answer with one JSON object and nothing else:
{"entities": [{"name": "...", "type": "...", "description": "one short sentence"}],
 "relationships": [{"from": "name", "to": "name", "type": "...", "weight": 1.0}]}
If there is nothing to list, both lists are empty.

Passage:
` + ChunkMark

// facts are the entities and relations that a model found in one chunk.
type facts struct {
	Entities  []entity   `json:"entities"`
	Relations []relation `json:"relationships"`
}

// An entity is identified by its name; upper and lower case are the same.
type entity struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
}

// A relation goes from one name to another.
type relation struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Type   string  `json:"type"`
	Weight float64 `json:"weight"`
}

// otherType is the type of an entity whose type the model did not give, or that is not specific.
const otherType = "OTHER"

// The most bytes that are kept: an entity with a longer name is ignored.
const (
	maxName        = 200
	maxDescription = 1000
)

// errAnswer is the error of an answer that holds no facts.
var errAnswer = errors.New(`the answer is not a JSON object with "entities" and "relationships"`)

// maxStarts is how many braces of an answer are taken for the beginning of its data.
const maxStarts = 20

// readFacts finds the data in an answer. Text before and after the data is ignored.
func readFacts(answer string) (facts, error) {
	found := errAnswer
	at := 0
	for range maxStarts {
		i := strings.IndexByte(answer[at:], '{')
		if i < 0 {
			break
		}
		f, err := decodeFacts(answer[at+i:])
		if err == nil {
			return f, nil
		}
		if found == errAnswer {
			found = fmt.Errorf("%w: %w", errAnswer, err)
		}
		at += i + 1
	}
	return facts{}, found
}

// A saidRelation is a relation in the form in which models write it.
type saidRelation struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Type   string `json:"type"`
	Weight any    `json:"weight"`
}

// decodeFacts reads the JSON object at the beginning of text, and ignores what follows.
func decodeFacts(text string) (facts, error) {
	var said struct {
		Entities  *[]entity      `json:"entities"`
		Relations []saidRelation `json:"relationships"`
	}
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&said); err != nil {
		return facts{}, err
	}
	if said.Entities == nil {
		return facts{}, errors.New(`"entities" is missing`)
	}
	f := facts{Entities: []entity{}, Relations: []relation{}}
	for _, e := range *said.Entities {
		e.Name = plainName(e.Name)
		if e.Type = strings.ToUpper(strings.TrimSpace(e.Type)); e.Type == "" {
			e.Type = otherType
		}
		if e.Description = strings.TrimSpace(e.Description); len(e.Description) > maxDescription {
			e.Description = strings.ToValidUTF8(e.Description[:maxDescription], "")
		}
		if e.Name != "" {
			f.Entities = append(f.Entities, e)
		}
	}
	for _, r := range said.Relations {
		from := plainName(r.From)
		to := plainName(r.To)
		if from != "" && to != "" {
			f.Relations = append(f.Relations, relation{from, to, strings.TrimSpace(r.Type), readWeight(r.Weight)})
		}
	}
	return f, nil
}

// plainName returns the form of a name that identifies an entity, or "" if it cannot be a name.
func plainName(name string) string {
	name = strings.ToLower(strings.Join(strings.Fields(name), " "))
	if len(name) > maxName {
		return ""
	}
	return name
}

// readWeight returns a weight between 0 and 1. It returns 1 for a value that is not a number.
func readWeight(said any) float64 {
	switch w := said.(type) {
	case float64:
		return min(max(w, 0), 1)
	case string:
		if f, err := strconv.ParseFloat(strings.TrimSpace(w), 64); err == nil && !math.IsNaN(f) {
			return min(max(f, 0), 1)
		}
	}
	return 1
}

// An entityGraph joins the facts of many chunks.
type entityGraph struct {
	entities []entity
	mentions [][]int64 // of each entity: the chunks, in order
	at       map[string]int
	said     []relation // all of them, in order
}

// addFacts adds the facts of a chunk. The caller must call it in the order of the documents.
func (g *entityGraph) addFacts(chunk int64, f facts) {
	if g.at == nil {
		g.at = map[string]int{}
	}
	for _, e := range f.Entities {
		i, known := g.at[e.Name]
		if !known {
			i = len(g.entities)
			g.at[e.Name] = i
			g.entities = append(g.entities, e)
			g.mentions = append(g.mentions, nil)
		}
		have := &g.entities[i]
		if have.Type == otherType {
			have.Type = e.Type
		}
		if have.Description == "" {
			have.Description = e.Description
		}
		if m := g.mentions[i]; len(m) == 0 || m[len(m)-1] != chunk {
			g.mentions[i] = append(m, chunk)
		}
	}
	g.said = append(g.said, f.Relations...)
}

// An edge is a relation between entities by their index.
type edge struct {
	from, to int
	typ      string
	weight   float64
}

// knownEdges returns the relations between known entities; of several with the same ends and type, it returns the
// first.
func (g *entityGraph) knownEdges() (all []edge) {
	type ends struct {
		from, to int
		typ      string
	}
	seen := map[ends]bool{}
	for _, r := range g.said {
		from, ok1 := g.at[r.From]
		to, ok2 := g.at[r.To]
		key := ends{from, to, r.Type}
		if !ok1 || !ok2 || seen[key] {
			continue
		}
		seen[key] = true
		all = append(all, edge{from, to, r.Type, r.Weight})
	}
	return all
}
