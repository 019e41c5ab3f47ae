// Package rag keeps knowledge bases: documents cut into chunks that a question finds again, by meaning and by words.
//
//	base, err := rag.Open("handbook.db", rag.Options{Model: rag.Keyword, ChunkSize: 1000})
//	…
//	defer base.Close()
//	report, err := base.Build(ctx, []string{"docs/**/*.md"}, nil)
//	hits, err := base.Search(ctx, "How long is the notice period?", rag.SearchOptions{})
//
// A base is one SQLite file. What is promised:
//
//   - A build can be stopped at any moment, also by kill -9. The next one goes on where it stopped: a document that was cut, and a text
//     that was embedded, is not again.
//   - Until a build is complete, searches see what the last complete one has published. A build that fails changes nothing for them.
//   - A document is looked at again only when its bytes have changed, and of a changed one only the chunks that are new are embedded.
//   - A document that cannot be read costs itself and no other: it is a [load.Problem] of the [Report]. If an earlier build has it, that
//     version stays.
//   - Nothing is sent anywhere unless an [Embedder], a [Reranker] or the model of an [Extraction] is there to send it, or a source is a URL.
//
// The model [Keyword] means that there are no vectors, and that a search is one for words alone.
//
// Searching ranks all chunks twice, by the cosine of their vectors to that of the question and by BM25 over stemmed English words, and
// fuses the two rankings by reciprocal rank; or it has a Reranker order what both have found. Vectors are compared exactly, all of them.
// From the first search on, codes of two bytes a dimension and chunk are held in memory, which tell the few that the file is asked for. The
// words stay in the file.
//
// With an [Extraction] a chat model finds entities in chunks and relations between them. A third ranking then lists the chunks that mention
// what the question names, or what is related to that.
package rag
