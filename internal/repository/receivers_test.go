package repository_test

import (
	"go/ast"
	"testing"
)

// A restart is what a receiver of replies does when a model writes a reply again, of which it has already got a part.
type restart int

const (
	takesBack  restart = iota + 1 // it has a case for updates.ReplyWithdrawn
	overwrites                    // the first piece of the new text replaces what it has: it reads TextAdded.First
	readsWhole                    // it uses no pieces, only whole replies, or passes on events as they are
)

// replyReceivers are the types that keep the replies of a run or get their pieces, by package and name.
var replyReceivers = map[string]restart{
	"flow/narrate.Narrator":                readsWhole, // a line for each whole reply
	"internal/report/progress.ReplyStream": takesBack,  // a line says why, and the new text follows it
	"internal/report/progress.Reporter":    takesBack,  // the old reasoning is not reported
	"internal/report/progress.statusBoard": takesBack,  // the row begins again
	"server.Subscription":                  readsWhole, // leaves out late pieces, passes on all other events
	"server.feed":                          readsWhole, // who comes late gets what the newest attempt has written
	"server/a2a.book":                      readsWhole, // an artifact for each whole reply
	"server/a2a.streamer":                  overwrites, // the chunk does not append to the artifact
	"server/acp.turn":                      takesBack,  // a paragraph says why, and the new text follows it
	"server/agui.translator":               takesBack,  // the message ends, and another one begins
	"server/mcp.progress":                  takesBack,  // the unfinished line is not sent
	"server/openai.reply":                  takesBack,  // a paragraph says why, and the new text follows it
}

// TestReceiversOfReplies checks that every receiver of replies does something with one that begins again.
func TestReceiversOfReplies(t *testing.T) {
	found := map[string]map[string]bool{} // the names of package updates that a type uses, and First
	for _, p := range packages(t) {
		for _, f := range p.code() {
			for _, d := range f.syntax.Decls {
				for owner, names := range usesOfUpdates(d) {
					name := p.name + "." + owner
					if found[name] == nil {
						found[name] = map[string]bool{}
					}
					for _, n := range names {
						found[name][n] = true
					}
				}
			}
		}
	}
	for name, uses := range found {
		keeps := uses["field Tracker"] || uses["field Calls"] || uses["field Replies"]
		pieces := uses["TextAdded"] || uses["ReasoningAdded"]
		if !keeps && !pieces {
			continue
		}
		does := readsWhole
		switch {
		case pieces && uses["ReplyWithdrawn"]:
			does = takesBack
		case pieces && uses["First"]:
			does = overwrites
		case pieces:
			t.Errorf("%s uses pieces of replies, and keeps the old ones when a reply begins again: give it a case for updates.ReplyWithdrawn", name)
			continue
		}
		if want := replyReceivers[name]; want != does {
			t.Errorf("%s does %d with a reply that begins again, and replyReceivers has %d: give it a row that is true", name, does, want)
		}
	}
	for name := range replyReceivers {
		if found[name] == nil {
			t.Errorf("%s uses no replies: remove its row from replyReceivers", name)
		}
	}
}

// usesOfUpdates returns which names of package updates a declaration uses, by the types that it declares or is a method
// of: those in the type begin with "field ". Selectors of fields named First count, too.
func usesOfUpdates(d ast.Decl) map[string][]string {
	uses := map[string][]string{}
	add := func(owner, kind string, in ast.Node) {
		ast.Inspect(in, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			if ok && (x.Name == "updates" || s.Sel.Name == "First") {
				uses[owner] = append(uses[owner], kind+s.Sel.Name)
			}
			return true
		})
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if owner := receiverName(d); owner != "" && d.Body != nil {
			add(owner, "", d.Body)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			typ, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			if fields, ok := typ.Type.(*ast.StructType); ok {
				add(typ.Name.Name, "field ", fields)
			}
		}
	}
	return uses
}
