package sdkcheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"google.golang.org/genai"
)

// TestEvents compares the structs into which the wires read events with those of the libraries, field by field.
func TestEvents(t *testing.T) {
	for _, c := range []struct {
		wire, root string
		library    reflect.Type
		extra      []string // fields that only compatible servers send, and fields of requests in types that serve both
	}{
		{"openai", "chunk", reflect.TypeFor[openai.ChatCompletionChunk](), []string{"reasoning_content", "reasoning"}},
		{"anthropic", "event", reflect.TypeFor[anthropic.MessageStreamEventUnion](), nil},
		{"gemini", "response", reflect.TypeFor[genai.GenerateContentResponse](), nil},
	} {
		t.Run(c.wire, func(t *testing.T) {
			w := readStructs(t, filepath.Join("..", "..", c.wire))
			w.extra = map[string]bool{}
			for _, name := range c.extra {
				w.extra[name] = true
			}
			w.compare(t, c.root, w.structs[c.root], c.library)
			if w.compared < 10 {
				t.Errorf("only %d fields were compared", w.compared)
			}
			for name, open := range w.extra {
				if open {
					t.Errorf("the wire does not read %s any more", name)
				}
			}
		})
	}
}

// wireStructs are the structs of a wire's package by name.
type wireStructs struct {
	structs  map[string]*ast.StructType
	extra    map[string]bool // true until the field has been met
	compared int
}

func readStructs(t *testing.T, dir string) *wireStructs {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	w := &wireStructs{structs: map[string]*ast.StructType{}}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && !strings.HasSuffix(name, "_test.go") {
				if s, ok := spec.Type.(*ast.StructType); ok {
					w.structs[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	return w
}

// compare looks for each field of s, which has a tag, among those of the library's type.
func (w *wireStructs) compare(t *testing.T, path string, s *ast.StructType, library reflect.Type) {
	t.Helper()
	if s == nil {
		t.Fatalf("there is no struct %s", path)
	}
	for library.Kind() == reflect.Pointer || library.Kind() == reflect.Slice {
		library = library.Elem()
	}
	if library.Kind() != reflect.Struct {
		t.Errorf("%s is an object, and %v in the library", path, library)
		return
	}
	for _, f := range s.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if _, ok := w.extra[name]; ok {
			w.extra[name] = false
			continue
		}
		w.compared++
		there, ok := fieldByTag(library, name)
		if !ok {
			t.Errorf("%s.%s is unknown to the library's %v", path, name, library)
			continue
		}
		if inner := w.structOf(f.Type); inner != nil {
			w.compare(t, path+"."+name, inner, there)
		}
	}
}

// structOf returns the struct behind pointers, lists and names of a type; nil if there is none.
func (w *wireStructs) structOf(expr ast.Expr) *ast.StructType {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return w.structOf(e.X)
	case *ast.ArrayType:
		return w.structOf(e.Elt)
	case *ast.StructType:
		return e
	case *ast.Ident:
		return w.structs[e.Name]
	}
	return nil
}

func fieldByTag(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name {
			return f.Type, true
		}
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			if found, ok := fieldByTag(f.Type, name); ok {
				return found, true
			}
		}
	}
	return nil, false
}
