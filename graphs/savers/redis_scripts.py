"""The scripts of the Redis saver. Redis runs each as one step: it happens whole, or not at all.

A thread has five keys, and one for each checkpoint that tasks wrote on top of:

    judgetree:order:THREAD         sorted set   place -> number, rising with each save of the store
    judgetree:saved:THREAD         hash         place -> row: a line of JSON (parent, metadata, names), checkpoint
    judgetree:values:THREAD        hash         name -> value of a channel, once for each version; "metadata": the last
    judgetree:newest:THREAD        hash         namespace -> place
    judgetree:written:THREAD       set          places with writes
    judgetree:writes:THREAD:PLACE  hash         task and number -> write

Two more are the store's: ``judgetree:saved`` has the numbers of all checkpoints, ``judgetree:names`` the threads. A
place is the JSON of namespace and id; in ``judgetree:saved`` the thread and its length stand before it. Either of the
two is made again from the other. Of a thread's keys some without the rest are what a server has lost.

``judgetree:format`` has a mark, without which the database is not the one that was opened: it was emptied meanwhile.
"""

from __future__ import annotations

THREAD_KINDS = ("order", "saved", "values", "newest", "written")
"""Kinds of the keys that a thread has once, in the order of ``KEYS``; ``writes`` it has for each place."""

_COUNTED = "#ARGV[1] .. ':' .. ARGV[1] .. "
_HEAD = "cjson.decode(string.sub(row, 1, string.find(row, '\\n', 1, true) - 1))"

_MEND = """
-- Makes the numbers of all checkpoints from the threads, or the threads from them, where one of the two is lost.
local function mend(all, names, order)
  local has_all, has_names = redis.call('EXISTS', all), redis.call('EXISTS', names)
  if has_all > has_names then
    for _, member in ipairs(redis.call('ZRANGE', all, 0, -1)) do
      local size = string.match(member, '^%d+')
      redis.call('ZADD', names, 0, string.sub(member, #size + 2, #size + 1 + tonumber(size)))
    end
  elseif has_all < has_names then
    for _, thread in ipairs(redis.call('ZRANGE', names, 0, -1)) do
      local found = redis.call('ZRANGE', order .. thread, 0, -1, 'WITHSCORES')
      for i = 1, #found, 2 do redis.call('ZADD', all, found[i + 1], #thread .. ':' .. thread .. found[i]) end
    end
  end
end
"""
_STATE = f"""{_MEND}
local order, saved, values, newest, written, all, names, format = unpack(KEYS)
local thread = ARGV[1]
-- Whether a thread is 'whole', 'absent', or has 'lost' keys that the others cannot be without.
local function state()
  mend(all, names, string.sub(order, 1, #order - #thread))
  local named, count = redis.call('ZSCORE', names, thread), redis.call('ZCARD', order)
  if not named and redis.call('EXISTS', order, saved, values, newest) == 0 then return 'absent' end
  local rows = redis.call('HLEN', saved)
  return named and count > 0 and count == rows and redis.call('EXISTS', newest) == 1 and 'whole' or 'lost'
end
"""

PUT = f"""{_STATE}
-- KEYS: those of the thread; saved, names, format of the store
-- ARGV: thread, mark, place, namespace, row, metadata, whether it has a parent, place that must be the newest ('-':
--       any), number of needed names, those, then names with their values
if redis.call('GET', format) ~= ARGV[2] then return {{'emptied', ''}} end
local now = state()
if now == 'lost' then return {{'lost', ''}} end
local place, follows = ARGV[3], ARGV[8]
local known = redis.call('ZSCORE', order, place)
local last_place = redis.call('HGET', newest, ARGV[4]) or ''
-- A save whose answer was lost is sent again: its own checkpoint is no other's.
if follows ~= '-' and not known and last_place ~= follows then return {{'moved', last_place}} end
if now == 'absent' and ARGV[7] == '1' then return {{'lost', ''}} end
local first = 10 + tonumber(ARGV[9])
local given = {{}}
for i = first, #ARGV, 2 do given[ARGV[i]] = true end
for i = 10, first - 1 do
  -- A server that restarts without its last second lacks values that this client has sent.
  if not given[ARGV[i]] and redis.call('HEXISTS', values, ARGV[i]) == 0 then return {{'lost', ARGV[i]}} end
end
for i = first, #ARGV, 2 do redis.call('HSET', values, ARGV[i], ARGV[i + 1]) end
redis.call('HSET', values, 'metadata', ARGV[6])
redis.call('HSET', saved, place, ARGV[5])
if not known then
  local last = redis.call('ZREVRANGE', all, 0, 0, 'WITHSCORES')[2]
  local number = string.format('%.0f', (tonumber(last) or 0) + 1)
  redis.call('ZADD', order, number, place)
  redis.call('ZADD', all, number, {_COUNTED} place)
  redis.call('HSET', newest, ARGV[4], place)
  redis.call('ZADD', names, 0, thread)
end
return {{'saved', ''}}
"""

WRITE = """
-- KEYS: writes of the place, written, format; ARGV: mark, place, command, then names with their writes
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return 'emptied' end
if #ARGV == 3 then return 'saved' end
if redis.call('SISMEMBER', KEYS[2], ARGV[2]) ~= redis.call('EXISTS', KEYS[1]) then return 'lost' end
redis.call('SADD', KEYS[2], ARGV[2])
for i = 4, #ARGV, 2 do redis.call(ARGV[3], KEYS[1], ARGV[i], ARGV[i + 1]) end
return 'saved'
"""

READ = f"""{_STATE}
-- KEYS: those of the thread; saved, names, format of the store
-- ARGV: thread, mark, name of the writes before the place, namespace, 'whole' or 'left', places (none: the newest)
-- Gives 'whole' or what is wrong, then of each place: itself, row, values, writes. Without a row the last metadata.
if redis.call('GET', format) ~= ARGV[2] then return {{'emptied', {{}}}} end
local now, strict = state(), ARGV[5] == 'whole'
if now == 'lost' and strict then return {{'lost', {{}}}} end
local places = {{}}
for i = 6, #ARGV do places[#places + 1] = ARGV[i] end
if #places == 0 then places[1] = redis.call('HGET', newest, ARGV[4]) or nil end
local found = {{}}
for _, place in ipairs(places) do
  local row = redis.call('HGET', saved, place)
  if row then
    local needed, of_row = {_HEAD}[3], {{}}
    if #needed > 0 then of_row = redis.call('HMGET', values, unpack(needed)) end
    local writes = redis.call('HGETALL', ARGV[3] .. place)
    if strict and (#writes > 0) ~= (redis.call('SISMEMBER', written, place) == 1) then return {{'lost', {{}}}} end
    found[#found + 1] = {{place, row, of_row, writes}}
  elseif now == 'lost' then
    found[#found + 1] = {{place, '', {{redis.call('HGET', values, 'metadata')}}, {{}}}}
  end
end
return {{'whole', found}}
"""

METADATA = f"""
-- ARGV: names of the saved and of the values before the thread, then threads with their places
local found = {{}}
for i = 3, #ARGV, 2 do
  local row = redis.call('HGET', ARGV[1] .. ARGV[i], ARGV[i + 1])
  found[#found + 1] = row and {_HEAD}[2] or redis.call('HGET', ARGV[2] .. ARGV[i], 'metadata')
end
return found
"""

MEND = f"""{_MEND}
-- KEYS: saved, names of the store; ARGV: name of the order before the thread
mend(KEYS[1], KEYS[2], ARGV[1])
"""

LAST_SAVED = f"""{_MEND}
-- KEYS: saved, names, format of the store
-- ARGV: mark, name of the order before the thread, that of newest, first name, name behind the last
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return {{'emptied'}} end
mend(KEYS[1], KEYS[2], ARGV[2])
local found = {{'whole'}}
for _, thread in ipairs(redis.call('ZRANGEBYLEX', KEYS[2], ARGV[4], ARGV[5])) do
  local place = redis.call('HGET', ARGV[3] .. thread, '')
  if place or redis.call('EXISTS', ARGV[3] .. thread) == 0 then  -- one that has lost keys is there, too
    found[#found + 1] = thread
    found[#found + 1] = place and redis.call('ZSCORE', ARGV[2] .. thread, place) or '0'
  end
end
return found
"""

DELETE = f"""{_STATE}
-- KEYS: those of the thread; saved, names of the store
-- ARGV: thread, name of the writes before the place, the same as a pattern, 'all' or 'older'
local now, deletes_all = state(), ARGV[4] == 'all'
if now == 'lost' and not deletes_all then return end
local kept, needed = {{}}, {{metadata = true}}
if not deletes_all then
  for _, place in ipairs(redis.call('HVALS', newest)) do
    local row = redis.call('HGET', saved, place)
    kept[place] = true
    for _, name in ipairs(row and {_HEAD}[3] or {{}}) do needed[name] = true end
  end
end
local places = {{}}
for _, found in ipairs({{redis.call('SMEMBERS', written), redis.call('ZRANGE', order, 0, -1)}}) do
  for _, place in ipairs(found) do places[place] = true end
end
if now == 'lost' then  -- nothing names its places any more: they are looked for among all
  local cursor, before = '0', {_COUNTED} ''
  repeat
    local page = redis.call('SCAN', cursor, 'MATCH', ARGV[3], 'COUNT', 1000)
    cursor = page[1]
    for _, name in ipairs(page[2]) do
      local place = string.sub(name, #ARGV[2] + 1)
      if pcall(cjson.decode, place) then places[place] = true end  -- or it is of a thread with a longer id
    end
  until cursor == '0'
  for _, member in ipairs(redis.call('ZRANGE', all, 0, -1)) do
    if string.sub(member, 1, #before) == before then redis.call('ZREM', all, member) end
  end
end
for place in pairs(places) do
  if not kept[place] then
    redis.call('DEL', ARGV[2] .. place)
    redis.call('SREM', written, place)
    redis.call('ZREM', all, {_COUNTED} place)
    redis.call('ZREM', order, place)
    redis.call('HDEL', saved, place)
  end
end
if deletes_all then
  redis.call('DEL', unpack(KEYS, 1, 5))
  redis.call('ZREM', names, thread)
  return
end
for _, name in ipairs(redis.call('HKEYS', values)) do
  if not needed[name] then redis.call('HDEL', values, name) end
end
"""
