package graph_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"raddle.dev/graph"
	"raddle.dev/store/sqlite"
)

// This file has the examples of what a key does not tell its journal; see
// example_from_test.go.

// redacted stores a mark instead of a value: a reader of the journal, a resume too,
// finds the mark.
func redacted() graph.Codec[string] {
	const mark = "(redacted)"
	return graph.Codec[string]{
		Tag:    "redacted",
		Encode: func(dst []byte, _ string) ([]byte, error) { return append(dst, mark...), nil },
		Decode: func([]byte) (string, error) { return mark, nil },
	}
}

// encrypted stores a value under AES-GCM. The nonce is a keyed hash of the value:
// the same value is the same bytes each time, as a codec promises, and no two
// values share a nonce.
func encrypted(secret []byte) (graph.Codec[string], error) {
	derive := func(what string, from []byte) []byte {
		h := hmac.New(sha256.New, from)
		h.Write([]byte(what))
		return h.Sum(nil)
	}
	block, err := aes.NewCipher(derive("values", secret))
	if err != nil {
		return graph.Codec[string]{}, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return graph.Codec[string]{}, err
	}
	nonces := derive("nonces", secret)
	return graph.Codec[string]{
		Tag: "aes-gcm",
		Encode: func(dst []byte, v string) ([]byte, error) {
			nonce := derive(v, nonces)[:gcm.NonceSize()]
			return gcm.Seal(append(dst, nonce...), nonce, []byte(v), nil), nil
		},
		Decode: func(b []byte) (string, error) {
			if len(b) < gcm.NonceSize() {
				return "", errors.New("the value is cut short")
			}
			v, err := gcm.Open(nil, b[:gcm.NonceSize()], b[gcm.NonceSize():], nil)
			return string(v), err
		},
	}, nil
}

// holds reports whether the files of a database, its log included, hold a text.
func holds(database, text string) bool {
	files, err := filepath.Glob(database + "*")
	if err != nil || len(files) < 2 {
		panic(fmt.Sprint("the database and its log are missing: ", files, err))
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			panic(err)
		}
		if bytes.Contains(b, []byte(text)) {
			return true
		}
	}
	return false
}

// inFile runs a graph that asks whether to send a letter, on a thread in a file,
// and answers from another process, so to speak. then is called when it waits,
// and when it is done.
func inFile(keys []graph.AnyKey, send graph.Func, set []graph.Write, then func(database string, res graph.Result)) error {
	dir, err := os.MkdirTemp("", "letters")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, database := context.Background(), filepath.Join(dir, "runs.db")
	g := sound(graph.Def{Name: "letters", Keys: keys, Start: []string{"send"}, Nodes: []graph.Node{aNode("send", send)}, Edges: []graph.Edge{anEdge("send", graph.End)}})
	for waits := true; waits; {
		store, err := sqlite.Open(database)
		if err != nil {
			return err
		}
		r := &graph.Runner{Graph: g, Store: store}
		res, err := r.InvokeResume(ctx, graph.Resume{Thread: "t1", Answers: []graph.Answer{{ID: "send", Value: true}}})
		if errors.Is(err, graph.ErrNoThread) {
			res, err = r.Invoke(ctx, graph.Input{Thread: "t1", Set: set})
		}
		if err == nil {
			then(database, res)
		}
		if err := errors.Join(err, store.Close()); err != nil {
			return err
		}
		waits = res.Status == graph.Waiting
	}
	return nil
}

// A key with a codec that stores a mark is redacted: its value is in the state of
// the drive that wrote it, and nowhere else. A node that runs after a resume gets
// the mark, and fetches the value again, outside Do, whose results are journaled
// as they are.
func Example_redactedKey() {
	token, letter := graph.Last[string]("token").WithCodec(redacted()), graph.Last[string]("letter")
	err := inFile([]graph.AnyKey{token, letter}, func(ctx context.Context, s graph.State) (graph.Update, error) {
		fmt.Println("the node sees", token.Get(s))
		_, err := graph.Interrupt[bool](ctx, graph.Ask{Prompt: "send " + letter.Get(s) + "?"})
		return graph.Update{}, err
	}, []graph.Write{token.Set("tok-4711"), letter.Set("dear Ada")}, func(database string, res graph.Result) {
		fmt.Printf("%s; in the file: the letter %v, the token %v\n", res.Status, holds(database, "dear Ada"), holds(database, "tok-4711"))
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// the node sees tok-4711
	// waiting; in the file: the letter true, the token false
	// the node sees (redacted)
	// done; in the file: the letter true, the token false
}

// A key with a codec that encrypts comes back for every reader that has the secret.
func Example_encryptedKey() {
	codec, err := encrypted([]byte("kept by a vault, not by the program"))
	if err != nil {
		fmt.Println(err)
		return
	}
	letter := graph.Last[string]("letter").WithCodec(codec)
	err = inFile([]graph.AnyKey{letter}, func(ctx context.Context, s graph.State) (graph.Update, error) {
		fmt.Println("the node sees", letter.Get(s))
		_, err := graph.Interrupt[bool](ctx, graph.Ask{Prompt: "send it?"})
		return graph.Update{}, err
	}, []graph.Write{letter.Set("dear Ada")}, func(database string, res graph.Result) {
		fmt.Printf("%s; in the file: the question %v, the letter %v\n", res.Status, holds(database, "send it?"), holds(database, "dear Ada"))
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// the node sees dear Ada
	// waiting; in the file: the question true, the letter false
	// the node sees dear Ada
	// done; in the file: the question true, the letter false
}
