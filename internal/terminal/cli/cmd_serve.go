package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/chaos"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/serving"
	"raddle.dev/server"
	"raddle.dev/server/api"
	"raddle.dev/server/gateway"
)

// serveOptions are the flags of "serve".
type serveOptions struct {
	serving.Options
	open         bool
	printOpenAPI bool
	workerOnly   bool // drive runs, and listen nowhere
	rehearse     string
}

// defaultListen is where a server listens unless a flag says otherwise.
const defaultListen = "127.0.0.1:7777"

// defaultMaxRuns is how many runs a server drives at once unless a flag says otherwise.
const defaultMaxRuns = 64

// defaultGrace is how long a server that ends waits for the current steps of its runs.
const defaultGrace = 20 * time.Second

func newServeCommand(op *opener) *cobra.Command {
	opts := serveOptions{Options: serving.Options{Recover: true, WaitsPort: true}}
	cmd := newCommand(op, &opts, runServe, &cobra.Command{
		Use:   "serve",
		Short: "Run agents for programs, over HTTP",
		Long: `Starts, drives and answers runs for programs: over an API, and over the protocols of other tools. Only this machine
can reach the server, and each request needs a token; the first one is in a file that only you can read.

Ctrl-C lets the current steps end, for at most --grace, and saves every run. Every server of a store in SQLite or
PostgreSQL continues the runs of the others that have ended or were killed: raddle workers ls lists them. On Redis the
next raddle serve with the same state directory continues them.`,
		Example: `  raddle serve
  raddle serve --listen 127.0.0.1:8080 --max-runs 8
  raddle serve token add ci --scope read,start`,
		Args: checkArgCount(0, 0, ""),
	})
	flags := cmd.Flags()
	flags.StringVar(&opts.Listen, "listen", defaultListen, "listen at `HOST:PORT` (default "+defaultListen+")")
	flags.StringVar(&opts.PublicURL, "public-url", "", "the address behind a proxy: `URL`, with a base path if it has one")
	flags.StringVar(&opts.TLSCert, "tls-cert", "", "use TLS, with the certificate in `FILE`")
	flags.StringVar(&opts.TLSKey, "tls-key", "", "the key of that certificate, in `FILE`")
	flags.StringVar(&opts.UserHeader, "user-header", "", "take the user of a request from `HEADER`, which a proxy sets; without it, the user is the token's name")
	flags.BoolVar(&opts.Insecure, "insecure-listen", false, "listen for other machines without TLS: a proxy in front of raddle uses it")
	flags.StringArrayVar(&opts.Origins, "allow-origin", nil, "let pages of `ORIGIN` call the server (repeatable)")
	flags.IntVar(&opts.MaxRuns, "max-runs", defaultMaxRuns, fmt.Sprintf("drive at most `N` runs at once; others wait (default %d)", defaultMaxRuns))
	flags.IntVar(&opts.Limits.Requests, "max-requests", gateway.DefaultRequests, fmt.Sprintf("answer at most `N` requests of a token in a minute (default %d)", gateway.DefaultRequests))
	flags.IntVar(&opts.Limits.Starts, "max-starts", gateway.DefaultStarts, fmt.Sprintf("start at most `N` runs for a token in a minute (default %d)", gateway.DefaultStarts))
	flags.IntVar(&opts.Limits.Streams, "max-streams", 0, "answer at most `N` requests of a token at once, such as streams of events (default 512, or fewer if few files may be open)")
	flags.BoolVar(&opts.AllowPaths, "allow-paths", false, "let requests name an agent by its path")
	flags.DurationVar(&opts.Grace, "grace", defaultGrace, fmt.Sprintf("how long the current steps may take when the server ends (default %s)", defaultGrace))
	flags.StringSliceVar(&opts.Disable, "disable", nil, "do not offer `PROTOCOL`: "+strings.Join(serving.ProtocolNames(), ", ")+" (repeatable)")
	flags.BoolVar(&opts.NoWorker, "no-worker", false, "answer requests and drive no run: the other servers of the store do")
	flags.BoolVar(&opts.workerOnly, "worker-only", false, "drive the runs of the store and listen nowhere")
	flags.BoolVar(&opts.open, "open", false, "open the browser, which is then logged in")
	flags.BoolVar(&opts.printOpenAPI, "print-openapi", false, "print the document that describes the API, and end")
	flags.StringVar(&opts.rehearse, "rehearse", "", "take part in raddle chaos as `FILE` says")
	_ = flags.MarkHidden("rehearse")
	completeWords(cmd, "disable", serving.ProtocolNames()...)
	cmd.PreRunE = refuseIdleFlags
	cmd.AddCommand(newServeTokenCommand(op))
	return cmd
}

// refuseIdleFlags refuses the flags of "serve" that a server does not need which listens nowhere.
func refuseIdleFlags(cmd *cobra.Command, _ []string) error {
	if only, err := cmd.Flags().GetBool("worker-only"); !only {
		return err
	}
	var idle []string
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && !slices.Contains([]string{"worker-only", "no-worker", "max-runs", "grace"}, f.Name) {
			idle = append(idle, "--"+f.Name)
		}
	})
	if idle == nil {
		return nil
	}
	return ending.BadUsage("leave them out, or leave out --worker-only", "--worker-only listens nowhere, so that it cannot have %s", strings.Join(idle, ", "))
}

func runServe(ctx context.Context, con *console.Console, p *app.Process, opts serveOptions, _ []string) (err error) {
	if opts.printOpenAPI {
		document, err := api.OpenAPI()
		con.Out.PrintExact(string(document) + "\n")
		return err
	}
	if opts.MaxRuns < 1 {
		return ending.BadUsage("", "--max-runs %d: it must be at least 1", opts.MaxRuns)
	}
	for _, limit := range []struct {
		flag     string
		n, least int
		words    string
	}{{"max-requests", opts.Limits.Requests, 1, ""}, {"max-starts", opts.Limits.Starts, 1, ""}, {"max-streams", opts.Limits.Streams, 0, ", or 0 for the default"}} {
		if limit.n < limit.least {
			return ending.BadUsage("", "--%s %d: it must be at least 1%s", limit.flag, limit.n, limit.words)
		}
	}
	for _, name := range opts.Disable {
		if !slices.Contains(serving.ProtocolNames(), name) {
			return ending.BadUsage(ending.SuggestWord(name, serving.ProtocolNames()), "--disable %s: there is no such protocol", name)
		}
	}
	if opts.workerOnly {
		return serveWorker(ctx, con, p, opts)
	}
	if opts.rehearse != "" {
		if err := chaos.Rehearse(p, opts.rehearse); err != nil {
			return err
		}
	}
	g, file, err := serving.Open(p, opts.Options)
	if err != nil {
		return err
	}
	defer func() { _ = g.Close() }()
	where := "in " + p.Dirs.ShortPath(file)
	if os.Getenv(gateway.TokenVariable) != "" {
		where = "that of " + gateway.TokenVariable
	}
	where = fmt.Sprintf("raddle serves at %s; the token is %s", con.Screen.Paint(term.Cyan, g.Address()), where)
	return serveUntilSignal(ctx, con, g.Serve, where+offerLogin(ctx, con, g, "", opts.open))
}

// serveWorker drives the runs of the store until the first signal.
func serveWorker(ctx context.Context, con *console.Console, p *app.Process, opts serveOptions) error {
	if opts.NoWorker {
		return ending.BadUsage("leave out one of them", "--worker-only and --no-worker leave nothing to do")
	}
	s, err := server.New(p, opts.ServiceOptions(p))
	if err != nil {
		return err
	}
	serve := func(ctx, drainCtx context.Context) error {
		<-ctx.Done()
		graceful, cancel := context.WithTimeout(drainCtx, opts.Grace)
		defer cancel()
		return s.Close(graceful)
	}
	where := fmt.Sprintf("raddle drives the runs of %s, at most %d at once", p.Runs.StoreURL(), opts.MaxRuns)
	return serveUntilSignal(ctx, con, serve, where)
}

// offerLogin opens the browser at a page, or returns a line with the address at which a browser logs in.
func offerLogin(ctx context.Context, con *console.Console, g *gateway.Gateway, page string, open bool) string {
	address, err := g.LoginAddress(ctx, page)
	if err != nil {
		return fmt.Sprintf("\nto log in with a browser, use a token: %v", err)
	}
	login := "to log in with a browser, once and within 10 minutes: " + con.Screen.Paint(term.Cyan, address)
	if !open {
		return "\n" + login
	}
	go func() {
		if err := g.OpenBrowser(ctx, page); err != nil {
			con.PrintNote("raddle: %v; %s", err, login)
		}
	}()
	return ""
}

// serveUntilSignal prints where the server is and serves until the first signal. The second one ends the grace of the
// steps that work.
func serveUntilSignal(ctx context.Context, con *console.Console, serve func(ctx, drainCtx context.Context) error, where string) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	con.Screen.PrintLine(where) // its reader may stop the server at once
	ctx, end := context.WithCancel(ctx)
	drainCtx, endNow := context.WithCancel(context.Background())
	defer endNow()
	done := make(chan struct{})
	defer close(done)
	go func() {
		for _, stop := range []func(){func() {
			con.PrintNote("raddle: the server ends and saves its runs; Ctrl-C again ends their steps now")
			end()
		}, endNow} {
			select {
			case <-signals:
				stop()
			case <-done:
			}
		}
		end()
	}()
	return serve(ctx, drainCtx)
}

// studioOptions are the flags of "studio".
type studioOptions struct {
	listen string
	noOpen bool
}

// defaultStudioListen is where the Studio listens unless a flag says otherwise, or another program does.
const defaultStudioListen = "127.0.0.1:7778"

func newStudioCommand(op *opener) *cobra.Command {
	var opts studioOptions
	cmd := newCommand(op, &opts, runStudio, &cobra.Command{
		Use:   "studio [RUN[@N]]",
		Short: "See, answer and fork runs in a browser",
		Long: `Opens a web page with the open questions, the runs at every moment, the agents and the conversations. Only this
machine can reach it, and only the browser that raddle opens is logged in. The page shows the same runs as the other
commands; what you start there works until Ctrl-C, which saves it.`,
		Example:           "  raddle studio\n  raddle studio last\n  raddle studio last@7 --no-open",
		Args:              checkArgCount(0, 1, ""),
		ValidArgsFunction: completePoints(op, 1),
	})
	cmd.Flags().StringVar(&opts.listen, "listen", "", "listen at `HOST:PORT` (default "+defaultStudioListen+", or a free port)")
	cmd.Flags().BoolVar(&opts.noOpen, "no-open", false, "print the address and open no browser")
	return cmd
}

func runStudio(ctx context.Context, con *console.Console, p *app.Process, opts studioOptions, args []string) error {
	page := ""
	if len(args) > 0 {
		d, err := p.Runs.ReadRunDetail(ctx, args[0])
		if err != nil {
			return err
		}
		page = "runs/" + runs.Point{Run: d.Run, At: d.At}.String()
	}
	g, err := openStudio(p, opts.listen)
	if err != nil {
		return err
	}
	defer func() { _ = g.Close() }()
	where := "the Studio is at " + con.Screen.Paint(term.Cyan, g.Address()) + "; Ctrl-C ends it"
	return serveUntilSignal(ctx, con, g.Serve, where+offerLogin(ctx, con, g, page, !opts.noOpen))
}

// openStudio opens the server of the Studio at an address, "" for the usual one, so that the addresses of pages stay
// true; if another program listens there, at a free port.
func openStudio(p *app.Process, listen string) (*gateway.Gateway, error) {
	opts := serving.Options{
		Settings: gateway.Settings{Listen: cmp.Or(listen, defaultStudioListen), Grace: defaultGrace},
		MaxRuns:  defaultMaxRuns,
		Disable:  serving.ProtocolNames(),
	}
	g, _, err := serving.Open(p, opts)
	if errors.Is(err, syscall.EADDRINUSE) && listen == "" {
		opts.Listen = "127.0.0.1:0"
		g, _, err = serving.Open(p, opts)
	}
	return g, err
}

func newServeTokenCommand(op *opener) *cobra.Command {
	return newGroup(op, &cobra.Command{Use: "token", Short: "Add, list and remove tokens of the server"},
		newServeTokenAddCommand(op),
		newOutputCommand(op, "write them as `FORMAT`: text or json", runServeTokenLs, &cobra.Command{
			Use: "ls", Short: "List the tokens that were added", Args: checkArgCount(0, 0, ""),
		}),
		newCommand(op, &noOptions{}, runServeTokenRm, &cobra.Command{
			Use: "rm NAME", Short: "Remove a token: requests with it are refused at once", Args: checkArgCount(1, 1, "the name of the token"),
		}))
}

// tokenAddOptions are the flags of "serve token add".
type tokenAddOptions struct{ scope, expires string }

func newServeTokenAddCommand(op *opener) *cobra.Command {
	var opts tokenAddOptions
	cmd := newCommand(op, &opts, runServeTokenAdd, &cobra.Command{
		Use:   "add NAME",
		Short: "Make a token and print it",
		Long: `Prints a new token once; raddle saves only its hash. Its scopes say what it may do: read (see agents, runs and
questions), start (start, pause, resume and cancel runs), answer (answer questions), admin (change and delete what is
recorded). A token that has expired is refused; raddle serve token ls says which.`,
		Example: "  raddle serve token add ci --scope read,start --expires 30d",
		Args:    checkArgCount(1, 1, "the name of the token"),
	})
	cmd.Flags().StringVar(&opts.scope, "scope", "read,start", "what the token may do: `SCOPES`, separated by commas")
	cmd.Flags().StringVar(&opts.expires, "expires", "", "refuse the token after `TIME`: an age such as 30d, or a date such as 2030-01-31 (default never)")
	return cmd
}

func runServeTokenAdd(ctx context.Context, con *console.Console, p *app.Process, opts tokenAddOptions, args []string) error {
	scopes, err := server.ParseScopes(opts.scope)
	if err != nil {
		return ending.BadUsage("", "--scope: %v", err)
	}
	expires, err := parseExpiry(opts.expires, time.Now())
	if err != nil {
		return err
	}
	tokens, err := openTokens(p)
	if err != nil {
		return err
	}
	token, err := tokens.Add(ctx, args[0], scopes, expires)
	if err != nil {
		return err
	}
	con.Out.PrintExact(token)
	return nil
}

// openTokens opens the tokens of the servers of the store, to change them.
func openTokens(p *app.Process) (*gateway.Tokens, error) {
	st, err := p.Runs.OpenShared()
	if err != nil {
		return nil, err
	}
	return gateway.OpenTokens(p.Dirs.State, st), nil
}

// parseExpiry returns when a token expires: an age from now, or a date, at whose beginning in the time zone of this
// machine it ends. "": never.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.ParseInLocation(time.DateOnly, text, time.Local)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		age, wrong := parseAge("expires", text)
		if wrong != nil {
			return time.Time{}, ending.BadUsage("for example: --expires 30d, or --expires 2030-01-31", "--expires %s: it is neither an age nor a date", text)
		}
		at = now.Add(age)
	}
	if !at.After(now) {
		return time.Time{}, ending.BadUsage("", "--expires %s: this is in the past", text)
	}
	return at.UTC().Round(time.Second), nil
}

func runServeTokenLs(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, _ []string) error {
	st, err := p.Runs.OpenExistingMemory()
	if err != nil {
		return err
	}
	tokens := gateway.OpenTokens(p.Dirs.State, st)
	list, err := tokens.List(ctx)
	if err != nil {
		return err
	}
	lines := []listedToken{}
	for _, t := range list {
		used, err := tokens.LastUse(ctx, t)
		if err != nil {
			return err
		}
		lines = append(lines, listedToken{t.Name, t.Scopes, t.Created, t.Expires, t.IsExpired(time.Now()), used})
	}
	if opts.output == console.FormatJSON {
		return con.PrintJSON(lines)
	}
	if len(lines) == 0 {
		con.PrintNote("no tokens were added; the first one is in %s", p.Dirs.ShortPath(tokens.FirstPath()))
		return nil
	}
	table := term.NewTable(
		term.NewColumn("TOKEN", func(t listedToken) string { return t.Name }),
		term.NewColumn("SCOPES", listedToken.joinScopes),
		term.NewColumn("CREATED", func(t listedToken) string { return formatTime(t.Created, "", time.DateOnly) }),
		term.NewColumn("EXPIRES", listedToken.describeExpiry),
		term.NewColumn("LAST USE", func(t listedToken) string { return formatTime(t.LastUsed, "never", "2006-01-02 15:04") }),
	)
	for _, t := range lines {
		table.AddRow(t)
	}
	con.PrintTable(table)
	return nil
}

// A listedToken is a token of the server in a list, without its secret.
type listedToken struct {
	Name     string         `json:"name"`
	Scopes   []server.Scope `json:"scopes"`
	Created  time.Time      `json:"created,omitzero"`
	Expires  time.Time      `json:"expires,omitzero"`
	Expired  bool           `json:"expired,omitempty"`
	LastUsed time.Time      `json:"last_used,omitzero"`
}

func (t listedToken) joinScopes() string {
	words := make([]string, len(t.Scopes))
	for i, s := range t.Scopes {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

// describeExpiry says until when the token can be used.
func (t listedToken) describeExpiry() string {
	day := formatTime(t.Expires, "never", time.DateOnly)
	if t.Expired {
		return "expired " + day
	}
	return day
}

// formatTime returns a time of day or a date of this place; none if there is no time.
func formatTime(t time.Time, none, layout string) string {
	if t.IsZero() {
		return none
	}
	return t.Local().Format(layout)
}

func runServeTokenRm(ctx context.Context, con *console.Console, p *app.Process, _ noOptions, args []string) error {
	tokens, err := openTokens(p)
	if err != nil {
		return err
	}
	return tokens.Remove(ctx, args[0])
}
