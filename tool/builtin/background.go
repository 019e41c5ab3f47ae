package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"raddle.dev/tool"
)

// These are the times of calls about background commands.
const (
	firstOutput  = time.Second      // that a start or an input waits
	untilPrinted = 30 * time.Second // that a call waits for a text if it does not say how long
)

var (
	jobParam   = param{name: "job", required: true, about: "Handle of the command, such as job-1"}
	untilParam = param{name: "until", about: "Wait until it prints this text, 30 seconds unless wait says otherwise"}
)

// jobTools start and use background commands.
var jobTools = []definition{
	{
		name:   "command_start",
		effect: tool.Idempotent,
		about:  "Start a shell command in the workspace that continues in the background, such as a server or a long build, and get its handle and first output. It is ended with the run.",
		params: []param{
			{name: "command", required: true, about: "The command, as bash reads it, without & at its end"},
			{name: "input", flag: true, about: "Give it an input, for command_input; without it, it has none"},
			{name: "timeout", number: true, about: "End it after this many seconds; without it, it has no limit"},
			untilParam,
			{
				name:   "wait",
				number: true,
				about:  "How many seconds to wait until it ends or prints the text of until; 1 if it is left out",
			},
			hostsParam, outsideParam,
		},
		touches: touchCommand,
		run:     startBackground,
	},
	{
		name:   "command_output",
		effect: tool.ReadOnly,
		polls:  true,
		about:  "Get whether a background command still runs, and what it has printed since the last look. Without a job, list all background commands of the run.",
		params: []param{
			{name: "job", about: jobParam.about}, untilParam,
			{
				name:   "wait",
				number: true,
				about:  "Wait until the command ends, at most this many seconds; without it, do not wait",
			},
		},
		run: readBackground,
	},
	{
		name:   "command_input",
		effect: tool.Idempotent,
		about:  "Write a line to the input of a background command that was started with an input, and get what it prints then.",
		params: []param{
			jobParam,
			{name: "text", about: "What to write; a line end is added if it has none"},
			{name: "end", flag: true, about: "End the input after the text"},
			untilParam,
			{
				name:   "wait",
				number: true,
				about:  "How many seconds to wait until it ends or prints the text of until; 1 if it is left out",
			},
		},
		touches: func(Host, arguments) (tool.Touch, error) {
			return tool.Touch{Unknown: "gives a running command input, which it may run"}, nil
		},
		run: writeBackground,
	},
	{
		name:   "command_stop",
		effect: tool.Idempotent,
		about:  "End a background command and everything that it has started, and get the rest of its output.",
		params: []param{jobParam},
		run:    stopBackground,
	},
}

// touchCommand judges a command that is started like one that is executed.
func touchCommand(h Host, a arguments) (tool.Touch, error) {
	touch, err := touchShell(h, a)
	if err != nil {
		return touch, err
	}
	touch.Like = "execute_command"
	return touchBox(h, a, touch)
}

// A jobReport is what the model reads about a background command.
type jobReport struct {
	Job     string `json:"job"`
	Command string `json:"command,omitempty"`
	State   string `json:"state"`
	Output  string `json:"output,omitempty"`
	Note    string `json:"note,omitempty"`
	boxReport
}

// livesInBox is what a model reads when a command begins to live in the box.
const livesInBox = "It runs in a box: other commands cannot connect to it, it may not see what changes in the workspace after its start, and what it writes is in the workspace when it has ended. " +
	"For a server that others must reach, or that must see changes, stop it and call again with outside_box true; a person is then asked."

func startBackground(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	js, err := h.jobs()
	if err != nil {
		return tool.Result{}, err
	}
	c := h.buildCommand(h.shellCommand(a["command"]))
	c.Timeout = 0
	if seconds := a.intValue("timeout", 0); seconds > 0 {
		c.Timeout = time.Duration(seconds) * time.Second
	}
	var boxed *boxedRun
	if h.permit != nil && h.permit.Boxed {
		boxed = &boxedRun{host: h}
	}
	j, err := js.startJob(ctx, c, jobRecord{
		Command: a["command"],
		Key:     h.key,
	}, a["input"] == "true", boxed)
	if err != nil {
		return reportMissing(tool.Result{}, err)
	}
	return h.lookAt(ctx, j, a, firstOutput)
}

func readBackground(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	js, err := h.jobs()
	if err != nil {
		return tool.Result{}, err
	}
	thread := js.threadOf(ctx)
	if a["job"] == "" {
		list := []jobReport{}
		for _, s := range js.List(thread) {
			list = append(list, jobReport{Job: s.ID, Command: s.Command, State: s.State})
		}
		return tool.JSONResult(map[string]any{"jobs": list}), nil
	}
	j, err := js.findJob(thread, a["job"])
	if err != nil {
		return tool.Result{}, err
	}
	return h.lookAt(ctx, j, a, 0)
}

func writeBackground(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	j, err := h.findJob(ctx, a)
	if err != nil {
		return tool.Result{}, err
	}
	text := a["text"]
	end := a["end"] == "true"
	if text == "" && !end {
		return tool.Result{}, fmt.Errorf("there is nothing to write: set text, or end")
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if err := j.writeInput(ctx, h.key, text, end); err != nil {
		return tool.Result{}, err
	}
	return h.lookAt(ctx, j, a, firstOutput)
}

func stopBackground(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	j, err := h.findJob(ctx, a)
	if err != nil {
		return tool.Result{}, err
	}
	j.stopJob(errJobStopped)
	return j.reportJob(""), nil
}

// jobs returns the background commands of the process.
func (h Host) jobs() (*Jobs, error) {
	if h.Jobs == nil {
		return nil, fmt.Errorf("there are no background commands here: use execute_command")
	}
	return h.Jobs, nil
}

// findJob returns the command that a call names.
func (h Host) findJob(ctx context.Context, a arguments) (*job, error) {
	js, err := h.jobs()
	if err != nil {
		return nil, err
	}
	return js.findJob(js.threadOf(ctx), a["job"])
}

// lookAt waits as a call says, otherwise for a time, and reports what the command does and has printed.
func (h Host) lookAt(ctx context.Context, j *job, a arguments, otherwise time.Duration) (tool.Result, error) {
	until := a["until"]
	if until != "" {
		otherwise = untilPrinted
	}
	limit := min(h.programTimeout(), time.Duration(max(0, a.intValue("wait", int(otherwise/time.Second))))*time.Second)
	found, err := j.waitUntil(ctx, limit, until, h.printed)
	if err != nil {
		return tool.Result{}, err
	}
	note := ""
	if until != "" && !found && !j.past {
		note = fmt.Sprintf("it has not printed %q", until)
	}
	return j.reportJob(note), nil
}

// reportJob returns what a call that looks at a command reports: what it has printed, and after its end once what the
// box did to it and what it changed.
func (j *job) reportJob(note string) tool.Result {
	ended := j.hasEnded()
	r := jobReport{Job: j.record.ID, State: j.describeState(), Output: j.takeOutput(), Note: note}
	if j.past {
		r.Command = j.record.Command
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.boxed == nil {
		return tool.JSONResult(r)
	}
	if !ended {
		if !j.told {
			r.Box = livesInBox
			j.told = true
		}
		return tool.JSONResult(r)
	}
	r.boxReport = j.left.report
	result := tool.JSONResult(r)
	result.Changes = j.left.changes
	j.left = jobRemains{}
	return result
}
