package flow

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/rag"
)

// BaseFile says where an agent stores one of its knowledge bases.
type BaseFile struct {
	ID        string   `json:"id"` // of the rag node; "rag" for the documents of a config.yaml
	Documents []string `json:"documents"`
	Path      string   `json:"path"`            // of the file that says that the base is built
	Store     string   `json:"store,omitempty"` // of the base itself; empty: the base is not built
	// Differs lists settings of the agent's file that differ from those of the
	// base. The settings of the base apply until it is built again.
	Differs []string `json:"differs,omitempty"`
	// Fusion is how searches join their rankings, as the agent's file says.
	Fusion rag.Fusion `json:"-"`
}

// BaseFiles returns the knowledge bases of the agent's file, built or not, in
// the order of the file.
func (a *Agent) BaseFiles() []BaseFile {
	files := []BaseFile{}
	for _, k := range a.knowledgeBases() {
		f := BaseFile{ID: k.id, Documents: k.documents, Path: filepath.Join(a.Dir, k.id+".yaml"), Fusion: k.options.Fusion}
		if text, err := plainfile.Read(f.Path, rag.MaxFile); err == nil {
			f.Store = f.Path
			if p, ok := readPointer(text); ok {
				f.Store, f.Differs = filepath.Join(a.Dir, filepath.Base(p.Base)), p.listDifferences(newBaseOpener(a).resolveKnowledge(k, p))
			}
		}
		files = append(files, f)
	}
	return files
}

// pointer is the file that says that a base has been built, and where it is. It
// is where the format's reference stores its own bases. The base contains its
// settings too; if they differ, those of the base apply.
type pointer struct {
	Base            string   `yaml:"base"`
	EmbeddingModel  string   `yaml:"embedding_model"`
	ChunkSize       int      `yaml:"chunk_size"`
	ChunkOverlap    int      `yaml:"chunk_overlap"`
	TopK            int      `yaml:"top_k"`
	RerankerModel   string   `yaml:"reranker_model,omitempty"`
	ExtractorModel  string   `yaml:"extractor_model,omitempty"`
	ExtractorPrompt string   `yaml:"extractor_prompt,omitempty"`
	GraphHops       *int     `yaml:"graph_hops,omitempty"`
	DocumentPaths   []string `yaml:"document_paths"`
}

// readPointer decodes a file; ok is false if another program has written it.
func readPointer(text []byte) (p pointer, ok bool) {
	err := yaml.Unmarshal(text, &p)
	return p, err == nil && p.Base != ""
}

// pointerTo returns the pointer to a base with settings.
func pointerTo(base string, s rag.Settings) pointer {
	return pointer{Base: base, EmbeddingModel: s.Model, ChunkSize: s.ChunkSize, ChunkOverlap: s.ChunkOverlap, TopK: s.TopK,
		RerankerModel: s.RerankerModel, ExtractorModel: s.ExtractorModel, ExtractorPrompt: s.ExtractorPrompt, GraphHops: s.GraphHops,
		DocumentPaths: s.Sources}
}

// withBuiltOptions returns o with the options with which the base was built.
func (p *pointer) withBuiltOptions(o rag.Options) rag.Options {
	o.Model = p.EmbeddingModel
	o.ChunkSize = p.ChunkSize
	o.ChunkOverlap = p.ChunkOverlap
	o.TopK = p.TopK
	o.RerankerModel = p.RerankerModel
	o.Extraction.Model = p.ExtractorModel
	o.Extraction.Prompt = p.ExtractorPrompt
	o.Extraction.Hops = p.GraphHops
	return o
}

// writeFile replaces the file atomically.
func (p *pointer) writeFile(path string) error {
	text, err := yaml.Marshal(p)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.WriteString("# Made by raddle: remove this file to build the knowledge base again.\n" + string(text))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// resolveKnowledge returns the settings with which a base would be built now without
// questions: those of the agent's file, else of the host, else those with which
// it was built.
func (b *baseOpener) resolveKnowledge(k knowledge, p pointer) knowledge {
	r := &b.host.Retrieval
	o := &k.options
	o.Model = cmp.Or(o.Model, r.Model, p.EmbeddingModel)
	o.ChunkSize = cmp.Or(o.ChunkSize, valueOr(r.ChunkSize, 0), p.ChunkSize)
	if !k.sized {
		o.ChunkOverlap = valueOr(r.ChunkOverlap, p.ChunkOverlap)
		k.sized = true
	}
	o.TopK = cmp.Or(o.TopK, r.TopK, rag.DefaultTopK)
	o.RerankerModel = cmp.Or(o.RerankerModel, r.RerankerModel)
	o.Extraction.Model = cmp.Or(o.Extraction.Model, r.ExtractorModel)
	return k
}

// listDifferences lists the settings of k that differ from the pointer's.
func (p *pointer) listDifferences(k knowledge) (list []string) {
	o := &k.options
	add := func(name string, was, is any) {
		if !reflect.DeepEqual(was, is) {
			list = append(list, fmt.Sprintf("%s is %v, and was %v", name, is, was))
		}
	}
	add("embedding_model", p.EmbeddingModel, o.Model)
	add("chunk_size", p.ChunkSize, o.ChunkSize)
	add("chunk_overlap", p.ChunkOverlap, o.ChunkOverlap)
	add("top_k", cmp.Or(p.TopK, rag.DefaultTopK), o.TopK)
	add("reranker_model", cmp.Or(p.RerankerModel, "none"), cmp.Or(o.RerankerModel, "none"))
	add("extractor_model", cmp.Or(p.ExtractorModel, "none"), cmp.Or(o.Extraction.Model, "none"))
	if e := &o.Extraction; e.Model != "" && p.ExtractorModel != "" {
		if e.Prompt != p.ExtractorPrompt {
			list = append(list, "extractor_prompt has changed")
		}
		add("graph_hops", valueOr(p.GraphHops, rag.DefaultHops), valueOr(e.Hops, rag.DefaultHops))
	}
	if !slices.Equal(p.DocumentPaths, k.documents) {
		list = append(list, "documents have changed")
	}
	return list
}
