// Package rag keeps knowledge bases: documents cut into chunks that a question finds again, by meaning and by words.
//
//	base, err := rag.Open("handbook.db", rag.Options{Model: rag.Keyword, ChunkSize: 1000})
//	…
//	defer base.Close()
//	report, err := base.Build(ctx, []string{"docs/**/*.md"}, nil)
//	hits, err := base.Search(ctx, "How long is the notice period?", rag.SearchOptions{})
//
// A base is one SQLite file. The package promises:
//
//   - A build can be stopped at any moment, also by kill -9. The next one continues where it stopped: a document that was cut, or a text
//     that was embedded, is not processed again.
//   - Until a build is complete, searches see the state that the last complete one has published. A build that fails changes nothing for them.
//   - A document is processed again only if its bytes have changed, and of a changed document only the new chunks are embedded.
//   - A document that cannot be read does not affect the others: it is a [load.Problem] in the [Report]. If an earlier build could read
//     it, that version stays.
//   - Data leaves the process only through an [Embedder], a [Reranker], the model of an [Extraction], or a request for a source that is a URL.
//
// With the model [Keyword] there are no vectors, and a search compares only words.
//
// Searching ranks all chunks twice, by the cosine of their vectors to that of the question and by BM25 over stemmed
// English words, and fuses the two rankings by reciprocal rank; or a Reranker orders the chunks that both have found.
// All vectors are compared exactly. From the first search on, memory holds codes of two bytes for each dimension of
// each chunk; they select the few vectors that are read from the file. The words stay in the file.
//
// With an [Extraction] a chat model finds entities in chunks and relations between them. A third ranking then lists the
// chunks that mention entities of the question, or entities that are related to these.
package rag
