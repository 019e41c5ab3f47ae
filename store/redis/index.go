package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	client "github.com/redis/go-redis/v9"
	"raddle.dev/graph/journal"
)

var _ journal.Index = (*Store)(nil)

// The keys of lines. The fields of a line are place (journal.Line.Order), status, label and details, in the hash of its
// thread. Its name in the sorted sets is nameLine. Those that wait have the fields wait and parent too.
const (
	keyCounts   = tag + "lines"   // hash: how many lines have each status
	keyWaiting  = tag + "waiting" // sorted set: the lines with a Wait, by nameWait
	prefixForks = tag + "k:"      // sorted set: the threads whose lines have a parent
	keyUnlined  = tag + "unlined" // the last thread that has got a line, while those of an older format get theirs
	prefixLines = tag + "l:"      // sorted set: the lines of a status
	prefixLabel = tag + "n:"      // sorted set: those of a label too, behind "LENGTH:STATUS"

	pageLines = 256 // of each status
)

// nameLine returns the name of a line in sorted sets, which are sorted as the lines are by its place and its thread.
func nameLine(place, thread string) string {
	return strings.ReplaceAll(place, "\x00", "\x00\xff") + "\x00\x00" + thread
}

// nameWait returns what comes before the thread of a line in keyWaiting: its Wait, which is sorted as a text too.
func nameWait(wait int64) string { return fmt.Sprintf("%020d", wait) }

// The functions of scripts. listLine adds a line, {place, status, label, wait, parent}, to the sorted sets and the counts
// (n is 1) or removes it (-1); one without a place is in none, and wait is nameWait or empty. putLine writes the line
// {place, status, label, wait, parent, details} of a thread,
// of which key is the hash. addLine adds a line to a reply: the thread, the four, and the owner and the end of the lease;
// one whose hash was lost has this place, and no status; without a place, there is none.
const (
	listLine = `
local function listLine(l, thread, n)
	if not l[1] then return end
	local name = string.gsub(l[1], '%z', '\0\255') .. '\0\0' .. thread
	local sets = {'` + prefixLines + `' .. l[2]}
	if l[2] ~= '' then sets[2] = '` + prefixLabel + `' .. #l[2] .. ':' .. l[2] .. l[3] end
	for _, set in ipairs(sets) do
		if n > 0 then redis.call('ZADD', set, 0, name) else redis.call('ZREM', set, name) end
	end
	local change = n > 0 and function(set, name) redis.call('ZADD', set, 0, name) end or function(set, name) redis.call('ZREM', set, name) end
	if (l[4] or '') ~= '' then change('` + keyWaiting + `', l[4] .. thread) end
	if (l[5] or '') ~= '' then change('` + prefixForks + `' .. l[5], thread) end
	if redis.call('HINCRBY', '` + keyCounts + `', l[2], n) == 0 then redis.call('HDEL', '` + keyCounts + `', l[2]) end
end
`
	putLine = listLine + `
local function putLine(key, thread, l)
	local old = redis.call('HMGET', key, 'place', 'status', 'label', 'wait', 'parent')
	redis.call('HSET', key, 'place', l[1], 'status', l[2], 'label', l[3], 'wait', l[4], 'parent', l[5], 'details', l[6])
	if old[1] ~= l[1] or old[2] ~= l[2] or old[3] ~= l[3] or old[4] ~= l[4] or old[5] ~= l[5] then
		listLine(old, thread, -1)
		listLine(l, thread, 1)
	end
end
`
	addLine = `
local function addLine(reply, thread, place)
	local m = redis.call('HMGET', '` + prefixMeta + `' .. thread, 'place', 'status', 'label', 'wait', 'parent', 'details', 'owner', 'until')
	m[1] = m[1] or place
	if not m[1] then return end
	local n = #reply
	reply[n + 1] = thread
	for i = 1, 7 do reply[n + 1 + i] = m[i] or '' end
	reply[n + 9] = tonumber(m[8] or 0)
end
local t = redis.call('TIME')
local reply = {t[1] * 1000000 + t[2]}
`
)

// upgradeScript changes a database of an older format: it gives the next threads lines without a status. KEYS: format,
// unlined, names. ARGV: the new format, how many threads. The result is 1 until all have lines. Any number of processes
// may run it, and it continues where one has ended. Those that know only an older format append nothing from its first
// call on.
var upgradeScript = client.NewScript(putLine + `
local found = redis.call('GET', KEYS[1])
if found == '1' or found == '2' then
	redis.call('SET', KEYS[1], ARGV[1])
	redis.call('SET', KEYS[2], '')
end
local last = redis.call('GET', KEYS[2])
if not last then return 0 end
local names = redis.call('ZRANGEBYLEX', KEYS[3], last == '' and '-' or '(' .. last, '+', 'LIMIT', 0, ARGV[2])
for _, name in ipairs(names) do
	local m = redis.call('HMGET', '` + prefixMeta + `' .. name, 'head', 'wait')
	if m[1] and not m[2] then putLine('` + prefixMeta + `' .. name, name, {name, '', '', '', '', ''}) end
end
if #names < tonumber(ARGV[2]) then
	redis.call('DEL', KEYS[2])
	return 0
end
redis.call('SET', KEYS[2], names[#names])
return 1
`)

// fillScript writes a line that has no status. KEYS: meta. ARGV: the thread, and its line in the order of putLine.
var fillScript = client.NewScript(putLine + `
if redis.call('HGET', KEYS[1], 'status') == '' then putLine(KEYS[1], ARGV[1], {unpack(ARGV, 2, 7)}) end
return 0
`)

// linesScript reads lines of statuses. KEYS: counts. ARGV: the bound of their names, as ZREVRANGEBYLEX reads it; how many
// of each status; the label, "" for all; 1 if only the statuses that follow are meant. The result is the server's time,
// and the lines of each status.
var linesScript = client.NewScript(addLine + `
local statuses = {unpack(ARGV, 5)}
if ARGV[4] ~= '1' then statuses = redis.call('HKEYS', KEYS[1]) end
for _, status in ipairs(statuses) do
	local set = '` + prefixLines + `' .. status
	if status ~= '' and ARGV[3] ~= '' then set = '` + prefixLabel + `' .. #status .. ':' .. status .. ARGV[3] end
	for _, name in ipairs(redis.call('ZREVRANGEBYLEX', set, ARGV[1], '-', 'LIMIT', 0, ARGV[2])) do
		local at = string.find(name, '\0\0', 1, true)
		addLine(reply, string.sub(name, at + 2), (string.gsub(string.sub(name, 1, at - 1), '%z\255', '\0')))
	end
end
return reply
`)

// prefixScript reads lines of threads by their names. KEYS: names. ARGV: the bounds of the names, upper first, in the
// form of ZREVRANGEBYLEX; how many. The result is that of linesScript.
var prefixScript = client.NewScript(addLine + `
for _, name in ipairs(redis.call('ZREVRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])) do
	addLine(reply, name, name)
end
return reply
`)

// waitingScript reads lines that wait. KEYS: waiting. ARGV: the bound of their names, as ZRANGEBYLEX reads it; how many.
// The result is that of linesScript.
var waitingScript = client.NewScript(addLine + `
for _, name in ipairs(redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', 0, ARGV[2])) do
	addLine(reply, string.sub(name, 21))
end
return reply
`)

// forksScript reads lines that have a parent. KEYS: names. ARGV: the parents. The result is that of linesScript.
var forksScript = client.NewScript(addLine + `
for _, parent in ipairs(ARGV) do
	for _, name in ipairs(redis.call('ZRANGE', '` + prefixForks + `' .. parent, 0, -1)) do addLine(reply, name) end
end
return reply
`)

// lineScript reads the line of a thread. KEYS: names. ARGV: the thread. The result is that of linesScript.
var lineScript = client.NewScript(addLine + `
addLine(reply, ARGV[1])
return reply
`)

// lineArgs returns a line in the order of putLine. Without a status it says nothing.
func lineArgs(l *journal.Line) []any {
	if l.Status == "" {
		return []any{l.Thread, "", "", "", "", ""}
	}
	wait := ""
	if l.Wait > 0 {
		wait = nameWait(l.Wait)
	}
	return []any{l.Order, l.Status, l.Label, wait, l.Parent, l.Details}
}

// upgrade brings a database of an older format to the current one, a batch of threads at a time.
func (s *Store) upgrade(ctx context.Context) error {
	for {
		left, err := s.runScript(ctx, upgradeScript, []string{keyFormat, keyUnlined, keyNames}, format, maxThreads)
		if err != nil || left != int64(1) {
			return err
		}
	}
}

// FillLine implements journal.Index.
func (s *Store) FillLine(ctx context.Context, l journal.Line) error {
	_, err := s.runScript(ctx, fillScript, []string{prefixMeta + l.Thread}, append([]any{l.Thread}, lineArgs(&l)...)...)
	return s.explainError(fmt.Sprintf("fill the line of thread %q", l.Thread), err)
}

// ReadLine implements journal.Index.
func (s *Store) ReadLine(ctx context.Context, thread string) (journal.Line, bool, error) {
	list, err := s.readLines(ctx, lineScript, keyNames, thread)
	if err != nil || len(list) == 0 {
		return journal.Line{}, false, s.explainError(fmt.Sprintf("read the line of thread %q", thread), err)
	}
	return list[0], true, nil
}

// ListLines implements journal.Index. It reads a page at a time: a line that changes meanwhile may be missing, or be
// there twice.
func (s *Store) ListLines(ctx context.Context, r journal.LineRange) (list []journal.Line, err error) {
	if r.Prefix != "" {
		list, err = s.listPrefix(ctx, r)
	} else {
		list, err = s.listStatuses(ctx, r)
	}
	if r.Limit > 0 && len(list) > r.Limit {
		list = list[:r.Limit]
	}
	return list, s.explainError("list lines", err)
}

// ListWaiting implements journal.Index. It reads a page at a time, as ListLines does.
func (s *Store) ListWaiting(ctx context.Context, r journal.WaitRange) (list []journal.Line, err error) {
	for {
		size := pageLines
		if r.Limit > 0 {
			size = min(size, r.Limit-len(list))
		}
		after := "-"
		if r.After != 0 {
			after = "(" + nameWait(r.After) + r.AfterThread
		}
		page, err := s.readLines(ctx, waitingScript, keyWaiting, after, size)
		if err != nil {
			return nil, s.explainError("list waiting lines", err)
		}
		list = append(list, page...)
		if len(page) < size || r.Limit > 0 && len(list) >= r.Limit {
			return list, nil
		}
		r.After = page[len(page)-1].Wait
		r.AfterThread = page[len(page)-1].Thread
	}
}

// ListForks implements journal.Index.
func (s *Store) ListForks(ctx context.Context, parents []string) (list []journal.Line, err error) {
	for chunk := range slices.Chunk(parents, pageLines) {
		args := make([]any, len(chunk))
		for i, parent := range chunk {
			args[i] = parent
		}
		page, err := s.readLines(ctx, forksScript, keyNames, args...)
		if err != nil {
			return nil, s.explainError("list forks", err)
		}
		list = append(list, page...)
	}
	slices.SortFunc(list, func(a, b journal.Line) int { return strings.Compare(a.Thread, b.Thread) })
	return slices.CompactFunc(list, func(a, b journal.Line) bool { return a.Thread == b.Thread }), nil
}

// listPrefix returns the lines of a range with a prefix, without its limit: it reads all that have the prefix.
func (s *Store) listPrefix(ctx context.Context, r journal.LineRange) (list []journal.Line, err error) {
	below := prefixUpperBound(r.Prefix)
	for {
		page, err := s.readLines(ctx, prefixScript, keyNames, below, "["+r.Prefix, pageLines)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if r.Selects(&page[i]) {
				list = append(list, page[i])
			}
		}
		if len(page) < pageLines {
			sortLines(list)
			return list, nil
		}
		below = "(" + page[len(page)-1].Thread
	}
}

// listStatuses returns the lines of a range without a prefix. Each page has the first ones of each status: their first
// ones together are those of the range.
func (s *Store) listStatuses(ctx context.Context, r journal.LineRange) (list []journal.Line, err error) {
	size := pageLines
	if r.Limit > 0 {
		size = min(size, r.Limit)
	}
	var statuses []any
	for i, status := range r.Statuses {
		if status != "" && !slices.Contains(r.Statuses[:i], status) {
			statuses = append(statuses, status)
		}
	}
	statuses = append(statuses, "")
	for {
		below := "+"
		if r.Below != "" {
			below = "(" + nameLine(r.Below, r.BelowThread)
		}
		args := append([]any{below, size, r.Label, flag(r.Statuses != nil)}, statuses...)
		page, err := s.readLines(ctx, linesScript, keyCounts, args...)
		if err != nil {
			return nil, err
		}
		sortLines(page)
		if len(page) < size {
			return append(list, page...), nil
		}
		list = append(list, page[:size]...)
		if r.Limit > 0 && len(list) >= r.Limit {
			return list, nil
		}
		r.Below = page[size-1].Order
		r.BelowThread = page[size-1].Thread
	}
}

// sortLines puts lines into the order of lists.
func sortLines(list []journal.Line) {
	slices.SortFunc(list, func(a, b journal.Line) int {
		return cmp.Or(strings.Compare(b.Order, a.Order), strings.Compare(b.Thread, a.Thread))
	})
}

// readLines runs a script that returns lines.
func (s *Store) readLines(ctx context.Context, script *client.Script, key string, args ...any) ([]journal.Line, error) {
	value, err := s.runScript(ctx, script, []string{key}, args...)
	if err != nil {
		return nil, err
	}
	var list []journal.Line
	rep := newReply(value)
	now := rep.takeNumber()
	for len(rep.values) > 0 && rep.err == nil {
		l := journal.Line{
			Thread: rep.takeText(),
			Order:  rep.takeText(),
			Status: rep.takeText(),
			Label:  rep.takeText(),
		}
		if wait := strings.TrimLeft(rep.takeText(), "0"); wait != "" && rep.err == nil {
			if l.Wait, rep.err = strconv.ParseInt(wait, 10, 64); rep.err != nil {
				rep.err = errDamaged
			}
		}
		l.Parent = rep.takeText()
		if details := rep.takeText(); details != "" {
			l.Details = []byte(details)
		}
		l.Lease = leaseOf(rep.takeText(), rep.takeNumber(), now)
		list = append(list, l)
	}
	return list, rep.err
}

// CountLines implements journal.Index.
func (s *Store) CountLines(ctx context.Context) (map[string]int, error) {
	var found *client.MapStringStringCmd
	err := s.retryWhileLost(ctx, func(ctx context.Context) error {
		found = s.db.HGetAll(ctx, keyCounts)
		return found.Err()
	})
	if err != nil {
		return nil, s.explainError("count lines", err)
	}
	count := map[string]int{}
	for status, n := range found.Val() {
		count[status], err = strconv.Atoi(n)
		if err != nil {
			return nil, s.explainError("count lines", errDamaged)
		}
	}
	return count, nil
}
