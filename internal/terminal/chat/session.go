package chat

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/charmbracelet/x/ansi"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/term/editor"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/conversation"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/tool/permission"
)

// A Backend does for a conversation what the commands of raddle do for a run.
type Backend interface {
	// Start starts a run with start. It asks the person for what the run needs: a model, variables, consent.
	Start(ctx context.Context, req app.Request, start func(app.Request) (*app.Run, error)) (*app.Run, error)
	// Resume prepares to continue a run.
	Resume(ctx context.Context, run string, mode *permission.ModeSwitch) (*app.Run, error)
	// Drive drives a run, shows what happens and asks its questions, until the run ends, parks, or has been
	// interrupted.
	Drive(run *app.Run, d Drive) (graph.Result, error)
	// Command runs a command of raddle.
	Command(ctx context.Context, args []string) error
	// ShowReply writes a text of a model.
	ShowReply(text string)
	// ShowError writes an error and what to do.
	ShowError(err error)
}

// Drive is what a conversation adds to the drive of a run.
type Drive struct {
	Interrupt <-chan struct{}      // closing it ends the turn
	Cancel    <-chan struct{}      // closing it stops the run, to be continued later
	Event     func(ev graph.Event) // called for each event
}

// Options say how a conversation starts.
type Options struct {
	Agent     string // name or path; "": the default assistant
	Name      string // of the conversation; "": a new one
	Continue  bool   // continue the newest conversation of this directory
	Model     string // replaces every model; "": as the agent says
	Variables map[string]string
	Mode      permission.Mode // empty: ask
	Plain     bool            // lines only: no editor and no live lines
	Budget    *agent.Limits   // of each turn; nil: none
	Deadline  time.Duration   // of each turn; 0: none
}

// A Terminal is where a conversation takes place.
type Terminal struct {
	*console.Console
	Prompter term.Prompter
}

// A notice is a text that is shown instead of the status line.
type notice struct {
	text  string // "": there is none
	since time.Time
}

// A Session is a conversation on a terminal.
type Session struct {
	Terminal
	Process *app.Process
	Backend Backend
	Options Options

	edit     *editor.Editor
	mode     *permission.ModeSwitch
	agent    *flow.Agent
	name     string // of the agent, as a request names it
	model    string // replaces every model; "": as the agent says
	talk     *conversation.Conversation
	talking  sync.Mutex // guards what talk holds: a turn that starts changes it
	title    string     // of talk
	vars     map[string]string
	queue    []message // sent while a turn works
	macro    macroState
	attached attachments // to be sent with the next message
	turn     *turn       // nil: no turn works
	notice   notice
	pressed  tea.KeyPressMsg // the last key, for keys that count twice
	at       time.Time       // when
	usage    usage
	last     graphTurn // of an agent that is a graph
	keys     *term.Keys
	echoed   string // what the terminal itself has shown as it was typed
	leaving  bool
}

// DefaultAgent is the agent of a conversation that names none.
const DefaultAgent = "assistant"

// Run runs the conversation until the person leaves it. The error says why it could not start or continue.
func (s *Session) Run(ctx context.Context) error {
	s.mode = permission.NewModeSwitch(cmp.Or(s.Options.Mode, s.Process.Config.Mode, permission.ModeAsk))
	s.vars = s.Options.Variables
	s.model = s.Options.Model
	s.usage.models = s.Process.Models
	if err := s.openFirst(ctx); err != nil {
		return err
	}
	if s.Options.Plain {
		return s.runPlain(ctx)
	}
	return s.runScreen(ctx)
}

// openFirst opens the conversation that the options name.
func (s *Session) openFirst(ctx context.Context) error {
	agent, name, err := FindNamed(ctx, s.Process, s.Options)
	if err != nil {
		return err
	}
	if s.Options.Continue && name == "" {
		s.say("There is no conversation in this directory yet. This is a new one.")
	}
	return s.openAgent(ctx, agent, name)
}

// FindNamed returns the agent and the name of the conversation that the options name. name is empty for a new one.
func FindNamed(ctx context.Context, p *app.Process, o Options) (agent, name string, err error) {
	agent = o.Agent
	name = o.Name
	if o.Continue {
		last, err := conversation.Latest(ctx, p, p.Dirs.Work)
		if err != nil {
			return "", "", err
		}
		if last != nil {
			return last.Agent, last.Name, nil
		}
	}
	if agent == "" && name != "" {
		list, err := conversation.List(ctx, p, "")
		if err != nil {
			return "", "", err
		}
		for _, c := range list {
			if c.Name == name {
				agent = c.Agent
				break
			}
		}
	}
	return cmp.Or(agent, DefaultAgent), name, nil
}

// openAgent changes to an agent, and to one of its conversations; "": a new one.
func (s *Session) openAgent(ctx context.Context, name, session string) error {
	a, err := s.Process.Load(app.LoadRequest{Agent: name, Model: s.model})
	if err != nil {
		return err
	}
	if s.talk != nil && s.talk.Name() == session && session != "" && s.talk.Agent() == name {
		return nil // it is open
	}
	talk, err := conversation.Open(ctx, s.Process, name, session)
	if err != nil {
		_ = a.Close() // only readers remain
		return err
	}
	s.closeAgent()
	s.agent, s.name, s.talk, s.title = a, name, talk, talk.Title()
	s.usage.reset()
	s.last = graphTurn{}
	s.attached = attachments{}
	return nil
}

// declaredValues returns the variables that an agent declares.
func declaredValues(all map[string]string, a *flow.Agent) map[string]string {
	mine := map[string]string{}
	for _, v := range a.Variables() {
		if value, ok := all[v.Name]; ok {
			mine[v.Name] = value
		}
	}
	return mine
}

func (s *Session) closeAgent() {
	if s.agent != nil {
		_ = s.agent.Close() // only readers remain
		s.agent = nil
	}
	if s.talk != nil {
		s.talk.Close()
		s.talk = nil
	}
}

// runScreen runs the conversation with an editor.
func (s *Session) runScreen(ctx context.Context) error {
	s.edit = editor.New(editor.OpenHistory(historyFile(s.Process), s.redact))
	s.edit.Complete = (&completer{session: s}).complete
	s.edit.Hint = "Ask or describe a task. / lists commands, @ attaches files."
	if s.takeKeys(); s.keys == nil {
		return errors.New("the keyboard cannot be read")
	}
	defer s.leaveKeys()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt) // sent by another program: the key is none here
	defer signal.Stop(interrupts)
	s.greet(ctx)
	resized, stop := term.NotifyResize()
	defer stop()
	s.continueTurn(ctx)
	for !s.leaving {
		s.draw()
		s.next(ctx, resized, interrupts)
	}
	s.stopTurn()
	s.closeAgent()
	return nil
}

// next waits for the next thing that happens, and handles it.
func (s *Session) next(ctx context.Context, resized, interrupts <-chan os.Signal) {
	var done <-chan turnEnd
	if s.turn != nil {
		done = s.turn.done
	}
	var forget <-chan time.Time
	if s.notice.text != "" {
		forget = time.After(time.Until(s.notice.since.Add(noticeTime)))
	}
	select {
	case msg := <-s.keys.Pressed:
		s.handleKey(ctx, msg)
		for more := true; more && !s.leaving; { // what was typed at once is drawn once
			select {
			case msg := <-s.keys.Pressed:
				s.handleKey(ctx, msg)
			default:
				more = false
			}
		}
	case end := <-done:
		s.finishTurn(ctx, end)
	case <-forget:
		s.notice = notice{}
	case <-resized:
	case <-s.usage.changeSignal():
	case <-interrupts:
		if s.turn != nil {
			s.interruptTurn()
		}
	case <-s.keys.Ended:
		s.leaving = true
	case <-ctx.Done():
		s.leaving = true
	}
}

// takeKeys begins to read keys for the editor.
func (s *Session) takeKeys() { s.keys = s.Keyboard.CaptureKeys() }

// leaveKeys gives the keyboard and the bottom of the screen back.
func (s *Session) leaveKeys() {
	s.Screen.SetInput(nil, term.Cursor{})
	s.Keyboard.Release()
}

// noticeTime is how long a notice replaces the status line.
const noticeTime = 4 * time.Second

// greet says where the conversation is.
func (s *Session) greet(ctx context.Context) {
	paint := s.Screen.Paint
	cols, _ := s.Screen.Size()
	head := paint(term.Bold, "raddle") + paint(term.Dim, " · "+term.CleanLine(s.agent.Name)+term.CutEnd(" · "+placeName(s.Process), max(cols-1-len("raddle · ")-term.TextWidth(s.agent.Name), 0)))
	s.Screen.PrintLine(head)
	s.Screen.PrintLine(paint(term.Dim, term.CutEnd("/help lists commands · Esc stops a reply · Ctrl-D leaves", cols-1)))
	if s.talk.IsGraph() {
		s.Screen.PrintLine(paint(term.Dim, "Each message runs this graph from its start."))
	}
	s.showRecent(ctx)
}

// showRecent shows the last message and reply of a conversation that continues.
func (s *Session) showRecent(ctx context.Context) {
	if s.talk.IsGraph() {
		return
	}
	turns, err := s.talk.Turns(ctx)
	if err != nil || len(turns) == 0 {
		return
	}
	s.say(fmt.Sprintf("Continuing %q, %s.", s.talk.Title(), countTurns(len(turns))))
	from := len(turns) - 1
	if from > 0 && !turns[from].Status.Final() { // it is continued, after what led to it
		from--
	}
	for _, turn := range turns[from:] {
		for _, text := range append([]string{turn.Prompt}, turn.Added...) {
			s.showMessage(text)
		}
		if turn.Reply != "" {
			s.Backend.ShowReply(turn.Reply)
		}
		if turn.Interrupted {
			s.say("This reply was interrupted.")
		}
	}
}

// placeName returns the directory of the conversation for people.
func placeName(p *app.Process) string {
	work := p.Dirs.Work
	home := p.Dirs.Home
	if rest, ok := strings.CutPrefix(work, home); ok && home != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
		work = "~" + rest
	}
	return term.CleanLine(work)
}

func countTurns(n int) string { return wording.FormatCount(n, "message") }

// say writes a line of the conversation itself.
func (t *Terminal) say(text string) {
	t.printWrapped(term.Dim, text)
}

// warn writes a line that the person should not miss.
func (t *Terminal) warn(text string) {
	t.printWrapped(term.Yellow, text)
}

// printWrapped writes a text in lines that fit the terminal.
func (t *Terminal) printWrapped(style term.Style, text string) {
	cols, _ := t.Screen.Size()
	for line := range strings.SplitSeq(ansi.Wrap(term.CleanLine(text), max(cols-1, 8), ""), "\n") {
		t.Screen.PrintLine(t.Screen.Paint(style, line))
	}
}

// showMessage writes a message of the person, as it was sent.
func (t *Terminal) showMessage(text string) {
	cols, _ := t.Screen.Size()
	lines := strings.Split(ansi.Wrap(term.CleanText(strings.TrimRight(text, "\n")), max(cols-3, 10), ""), "\n")
	const most = 20
	hidden := 0
	if len(lines) > most {
		hidden = len(lines) - most
		lines = lines[:most]
	}
	for i, line := range lines {
		prompt := "  "
		if i == 0 {
			prompt = "> "
		}
		lines[i] = t.Screen.Paint(term.Cyan, prompt) + t.Screen.Paint(term.Bold, term.CleanLine(line))
	}
	if hidden > 0 {
		lines = append(lines, t.Screen.Paint(term.Dim, fmt.Sprintf("  … %d more lines", hidden)))
	}
	t.Screen.PrintLine("\n" + strings.Join(lines, "\n"))
}

// redact removes the secrets that the process knows.
func (s *Session) redact(text string) string {
	return string(s.Process.Tools.SecretSet().Bytes([]byte(text)))
}

// historyFile returns the file with the messages that were sent from this directory.
func historyFile(p *app.Process) string {
	sum := sha256.Sum256([]byte(p.Dirs.Work))
	return filepath.Join(p.Dirs.State, "history", hex.EncodeToString(sum[:8])+".jsonl")
}

// A graphTurn is the last run of a graph.
type graphTurn struct{ run, output string }
