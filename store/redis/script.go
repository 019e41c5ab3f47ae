package redis

import (
	"context"

	client "github.com/redis/go-redis/v9"
)

// The scripts. The server runs each as a whole, and one at a time. It refuses a script before
// its first change if its memory is full or its disk cannot be written, and not later: a
// script is done completely or not at all. Numbers are exact up to maxSeq.

// appendScript adds records. KEYS: meta, heads, data, bases, names, ids, format. ARGV: the
// format, the number of the record to append after, the mark, the thread's name, how many
// records, how many arguments the line has (0 or 6), the line in the order of putLine, then
// the heads of the records, their data, and the numbers of those that are bases.
//
// The result is "ok", "conflict" or "format". A conflict with records that have the same
// mark is not one: an earlier try has stored them.
var appendScript = client.NewScript(putLine + `
local found = redis.call('GET', KEYS[7])
if found and found ~= ARGV[1] then return 'format' end
local m = redis.call('HMGET', KEYS[1], 'head', 'first', 'base')
local head, after, count = tonumber(m[1] or 0), tonumber(ARGV[2]), tonumber(ARGV[5])
if head ~= after then
	if after < head and after + 1 >= tonumber(m[2]) then
		local stored = redis.call('LINDEX', KEYS[2], after + 1 - tonumber(m[3]))
		if stored and string.sub(stored, 18, 25) == ARGV[3] then return 'ok' end
	end
	return 'conflict'
end
local line = tonumber(ARGV[6])
local at = 7 + line
for key = 2, 3 do
	for from = 0, count - 1, 1000 do
		local to = math.min(from + 1000, count)
		redis.call('RPUSH', KEYS[key], unpack(ARGV, at + from, at + to - 1))
	end
	at = at + count
end
redis.call('HSET', KEYS[1], 'head', after + count)
if after == 0 then
	redis.call('HSET', KEYS[1], 'id', redis.call('INCR', KEYS[6]), 'first', 1, 'base', 1)
	redis.call('ZADD', KEYS[5], 0, ARGV[4])
	redis.call('SET', KEYS[7], ARGV[1])
end
for i = at, #ARGV do redis.call('ZADD', KEYS[4], ARGV[i], ARGV[i]) end
if line > 0 then putLine(KEYS[1], ARGV[4], {unpack(ARGV, 7, 12)}) end
return 'ok'
`)

// readScript reads a page. KEYS: meta, heads, data, bases. ARGV: the thread's id, or "" at
// the first page; the bounds as in journal.Range, both set; 1 for FromSnapshot; 1 for Newest;
// Limit, 0 for none; 1 to read Data; the most records, and the bytes after which a page ends.
//
// The result is the id, the first and the last number of what is left to read, how many
// records follow, their heads and their data, both upwards. The page is at the upper end if
// Newest is set. Without records, the id is "". Bounds that the thread no longer has give
// "changed", and missing records "damaged", instead of the id.
var readScript = client.NewScript(`
local m = redis.call('HMGET', KEYS[1], 'id', 'head', 'first', 'base')
local id, head, first, base = m[1], tonumber(m[2]), tonumber(m[3]), tonumber(m[4])
local again, after = ARGV[1] ~= '', tonumber(ARGV[2])
if again and (id ~= ARGV[1] or first > after + 1) then return {'changed', 0, 0, 0} end
if not head then return {'', 0, 0, 0} end
local low, high = math.max(first, after + 1), math.min(head, tonumber(ARGV[3]))
if low > high then return {'', 0, 0, 0} end
local down, limit = ARGV[5] == '1', tonumber(ARGV[6])
if ARGV[4] == '1' then
	low = tonumber(redis.call('ZREVRANGEBYSCORE', KEYS[4], high, low, 'LIMIT', 0, 1)[1] or low)
end
if limit > 0 then
	if down then low = math.max(low, high - limit + 1) else high = math.min(high, low + limit - 1) end
end
local n = math.min(high - low + 1, tonumber(ARGV[8]))
local from = down and high - n + 1 or low
local heads = redis.call('LRANGE', KEYS[2], from - base, from - base + n - 1)
if #heads < n then return {'damaged', 0, 0, 0} end
local data, bytes, fit = ARGV[7] == '1', 0, 0
repeat
	fit = fit + 1
	local h = heads[down and n + 1 - fit or fit]
	bytes = bytes + #h
	if data and #h >= 29 then bytes = bytes + struct.unpack('>I4', h, 26) end
until fit == n or bytes >= tonumber(ARGV[9])
local skip = down and n - fit or 0
local reply = {id, low, high, fit}
for i = 1, fit do reply[4 + i] = heads[skip + i] end
if data then
	from = from + skip - base
	local values = redis.call('LRANGE', KEYS[3], from, from + fit - 1)
	if #values < fit then return {'damaged', 0, 0, 0} end
	for i = 1, fit do reply[4 + fit + i] = values[i] end
end
return reply
`)

// listScript lists threads. KEYS: names. ARGV: the bounds of the names, upper first, in the
// form of ZREVRANGEBYLEX; the most threads; the prefixes of the keys meta and heads, which
// are in the same slot as the names.
//
// The result is the server's time, and for each thread its name, the number of its first
// record, that record, both for its last one, and the owner and the end of its lease. The numbers of a
// thread whose keys were lost are 0.
var listScript = client.NewScript(`
local t = redis.call('TIME')
local reply = {t[1] * 1000000 + t[2]}
for _, name in ipairs(redis.call('ZREVRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])) do
	local m = redis.call('HMGET', ARGV[4] .. name, 'head', 'first', 'base', 'owner', 'until')
	if not m[1] then m = {0, 0, 0} end
	local n = #reply
	reply[n + 1], reply[n + 2], reply[n + 4] = name, tonumber(m[2]), tonumber(m[1])
	reply[n + 3] = redis.call('LINDEX', ARGV[5] .. name, m[2] - m[3]) or ''
	reply[n + 5] = redis.call('LINDEX', ARGV[5] .. name, -1) or ''
	reply[n + 6], reply[n + 7] = m[4] or '', tonumber(m[5] or 0)
end
return reply
`)

// pruneScript deletes records below a number. KEYS: meta, heads, data, bases, names. ARGV:
// the thread's id, the number, the most records that one call frees, the thread's name.
//
// The first call hides all of them at once. The result is how many hidden records are left
// to be freed by further calls. What frees memory comes first: it is allowed when the
// memory is full.
var pruneScript = client.NewScript(listLine + `
local m = redis.call('HMGET', KEYS[1], 'id', 'head', 'first', 'base')
if m[1] ~= ARGV[1] then return 0 end
local head, first, base, before = tonumber(m[2]), tonumber(m[3]), tonumber(m[4]), tonumber(ARGV[2])
if before > head then
	local line = redis.call('HMGET', KEYS[1], 'place', 'status', 'label', 'wait', 'parent')
	redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
	redis.call('ZREM', KEYS[5], ARGV[4])
	listLine(line, ARGV[4], -1)
	return 0
end
first = math.max(first, before)
local n = math.min(first - base, tonumber(ARGV[3]))
if n > 0 then
	redis.call('LTRIM', KEYS[2], n, -1)
	redis.call('LTRIM', KEYS[3], n, -1)
	redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', '(' .. ARGV[2])
	redis.call('HSET', KEYS[1], 'first', first, 'base', base + n)
end
return first - base - n
`)

// deleteScript deletes threads. KEYS: names, and four of each thread: meta, heads, data,
// bases. ARGV: the name and the id of each.
var deleteScript = client.NewScript(listLine + `
for i = 1, #ARGV / 2 do
	local k, id = 4 * i - 2, ARGV[2 * i]
	local line = redis.call('HMGET', KEYS[k], 'place', 'status', 'label', 'wait', 'parent', 'id')
	if line[6] == id then
		redis.call('UNLINK', KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3])
		redis.call('ZREM', KEYS[1], ARGV[2 * i - 1])
		listLine(line, ARGV[2 * i - 1], -1)
	end
end
return 0
`)

// leaseScript uses a lease. KEYS: meta. ARGV: acquire, renew, release or read; the owner; the
// owner that it may displace, or ""; the length in microseconds. The result is the owner
// and the end after the call, and the server's time.
var leaseScript = client.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local m = redis.call('HMGET', KEYS[1], 'owner', 'until')
local owner, till, what = m[1] or '', tonumber(m[2] or 0), ARGV[1]
local own = owner ~= '' and owner == ARGV[2]
local free = owner == '' or till <= now or own or owner == ARGV[3]
if what == 'renew' and own or what == 'acquire' and free then
	owner, till = ARGV[2], now + ARGV[4]
	redis.call('HSET', KEYS[1], 'owner', owner, 'until', till)
elseif what == 'release' and own then
	redis.call('HDEL', KEYS[1], 'owner', 'until')
	owner, till = '', 0
end
return {owner, till, now}
`)

// runScript runs a script, and again if the connection is lost: every script is written so
// that running it again changes nothing more.
func (s *Store) runScript(ctx context.Context, script *client.Script, keys []string, args ...any) (value any, err error) {
	err = s.retryWhileLost(ctx, func(ctx context.Context) (err error) {
		value, err = script.Run(ctx, s.db, keys, args...).Result()
		return err
	})
	return value, err
}
