/**
 * The scripts that run inside Redis: one for each operation, atomic and in one round trip.
 *
 * The record of an election is a hash without an expiry:
 *
 *     record      the record, JSON
 *     version     of the record; a random one for every write, so none ever comes again
 *     token       that of the record, for people and for `guard.superseded()`
 *     writtenAt   ms, by the clock of the server that wrote it
 *     server      which server, in which of its lives, has kept this key since `bornAt`
 *     life        random, since then
 *     lostToken   the highest token that is known from before that, by the record or by a candidate
 *
 * Some events may lose confirmed writes: a server was started again, a replica was promoted, or a
 * key was deleted. The script may then find another server in the hash than the one that answers,
 * or no hash at all. It begins a new *life*. The version changes, so no write that was decided
 * before is applied. And no candidate wins before the new life is one lease old.
 */
import { createHash } from 'node:crypto';

export interface Script {
  readonly text: string;
  readonly sha1: string;
}

function script(text: string): Script {
  return { text, sha1: createHash('sha1').update(text).digest('hex') };
}

/**
 * `server`, and `now` in ms. A read-only replica answers like any other server, but must
 * not be believed.
 */
const preamble = `
local replication = redis.call('INFO', 'replication')
local server = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not server then
  return redis.error_reply('NORUNID this server does not tell its run_id')
end
if string.match(replication, 'role:(%a+)') == 'slave' then
  return redis.error_reply('READONLY this server is a read-only replica')
end
server = server .. ':' .. (string.match(replication, 'master_replid:(%w+)') or '')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
`;

/** `enlist(incarnation, candidate, ttl)`. For people only, so it fails silently. */
const enlisting = `
local function enlist(incarnation, candidate, ttl)
  redis.pcall('HSET', KEYS[2], incarnation, text(now + ttl) .. ' ' .. candidate)
  local left = redis.pcall('PTTL', KEYS[2])
  if type(left) == 'number' and left < tonumber(ttl) then redis.pcall('PEXPIRE', KEYS[2], ttl) end
end
`;

/**
 * KEYS record, candidates. ARGV a random life. For a waiting candidate also its incarnation, its
 * JSON, and how many ms it stays listed. Then the highest token that the reader knows: in a new
 * life all candidates have one lease to tell theirs before one wins.
 *
 * Returns, all as texts: version, life, age of the record and of the life in ms, and the record.
 * Then the highest token known from before this life, and when this life began in ms since 1970.
 */
export const readScript: Script = script(`${preamble}${enlisting}
-- Tokens are decimal texts of any length.
local function higher(a, b)
  if #a > #b or (#a == #b and a > b) then return a end
  return b
end
local kept = redis.call('HMGET', KEYS[1], 'server', 'life', 'bornAt', 'version', 'writtenAt', 'record', 'token', 'lostToken')
local life, bornAt, version = kept[2], kept[3], kept[4]
local token, lostToken = kept[7] or '0', kept[8] or '0'
if not life and redis.call('EXISTS', KEYS[1]) == 1 then
  return redis.error_reply('NOTOURS a hash of somebody else')
end
if kept[1] == server and (tonumber(bornAt) or 0) > now then
  -- The clock was set back: until that time comes, this life would be no older than nothing.
  bornAt = text(now)
  redis.pcall('HSET', KEYS[1], 'bornAt', bornAt)
end
if kept[1] ~= server then
  life, bornAt, version, lostToken = ARGV[1], text(now), ARGV[1], higher(token, lostToken)
  local born = redis.pcall('HSET', KEYS[1], 'server', server, 'life', life, 'bornAt', bornAt, 'version', version, 'lostToken', lostToken)
  if type(born) == 'table' and born.err then
    -- Who may only read cannot mark this life, so there is no version to write on.
    if not string.find(born.err, 'NOPERM') and not string.find(born.err, 'user executing the script') then
      return born
    end
    life, version = '', ''
  end
end
if higher(ARGV[5], higher(token, lostToken)) ~= higher(token, lostToken) then
  lostToken = ARGV[5]
  redis.pcall('HSET', KEYS[1], 'lostToken', lostToken)
end
if ARGV[2] ~= '' then enlist(ARGV[2], ARGV[3], ARGV[4]) end
local age = kept[5] and text(math.max(0, now - kept[5])) or ''
return { version, life, age, text(math.max(0, now - bornAt)), kept[6] or '', lostToken, bornAt }
`);

/**
 * KEYS record. ARGV the expected version, the next one, record, token, channel (empty: no one waits
 * for this), message.
 *
 * Returns "ok" or "conflict", and why no message could be sent.
 */
export const swapScript: Script = script(`${preamble}
local kept = redis.call('HMGET', KEYS[1], 'server', 'version')
if kept[1] ~= server or kept[2] ~= ARGV[1] then return { 'conflict', '' } end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'record', ARGV[3], 'token', ARGV[4], 'writtenAt', text(now))
local told
if ARGV[5] ~= '' then told = redis.pcall('PUBLISH', ARGV[5], ARGV[6]) end
return { 'ok', type(told) == 'table' and told.err or '' }
`);

/**
 * KEYS record. ARGV the version. A write of no meaning, for WAIT to wait for. Returns 1 while that
 * version stands on the server that has kept it.
 */
export const touchScript: Script = script(`${preamble}
local kept = redis.call('HMGET', KEYS[1], 'server', 'version')
if kept[1] ~= server or kept[2] ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'touchedAt', text(now))
return 1
`);

/** KEYS record, candidates. ARGV incarnation, JSON, ms. */
export const enlistScript: Script = script(`${preamble}${enlisting}
enlist(ARGV[1], ARGV[2], ARGV[3])
return 1
`);

/** KEYS candidates. Returns the JSON of all that are listed. Removes those that are overdue. */
export const listScript: Script = script(`${preamble}
local all = redis.call('HGETALL', KEYS[1])
local listed = {}
for i = 1, #all, 2 do
  local untilMs, candidate = string.match(all[i + 1], '^(%d+) (.*)$')
  if untilMs and tonumber(untilMs) > now then
    listed[#listed + 1] = candidate
  else
    redis.pcall('HDEL', KEYS[1], all[i])
  end
end
return listed
`);

/**
 * KEYS record and candidates of one election after the other. ARGV the fields that are wanted of each
 * record. Of one field alone, the beginning is returned. Writes nothing.
 *
 * Returns for each election those fields, and the values of its candidates. A key of another type
 * counts as one that is not there.
 */
export const surveyScript: Script = script(`
local found = {}
for i = 1, #KEYS, 2 do
  local fields = redis.pcall('HMGET', KEYS[i], unpack(ARGV))
  local candidates = redis.pcall('HVALS', KEYS[i + 1])
  for _, reply in ipairs({ fields, candidates }) do
    if reply.err and not string.find(reply.err, 'WRONGTYPE') then return reply end
  end
  if #ARGV == 1 and fields[1] then fields[1] = string.sub(fields[1], 1, 16) end
  found[#found + 1] = { fields.err and {} or fields, candidates.err and {} or candidates }
end
return found
`);

/**
 * For writes that only the newest term may make. Put it before any of your own lines. It keeps the
 * highest token seen in KEYS[1], and ends the script with an error for a lower one in ARGV[1].
 * Tokens are decimal texts of any length, because Lua's numbers are exact only up to 2^53.
 */
export const fenceLua: string = `
local seen = redis.call('GET', KEYS[1]) or '0'
if #ARGV[1] < #seen or (#ARGV[1] == #seen and ARGV[1] < seen) then
  return redis.error_reply('STALETOKEN ' .. seen)
end
if ARGV[1] ~= seen then redis.call('SET', KEYS[1], ARGV[1]) end
`;

export function fencedScript(lua: string): Script {
  return script(`${fenceLua}${lua}`);
}

/** KEYS fence, key. ARGV token, value. */
export const fencedSetScript: Script = fencedScript(`
redis.call('SET', KEYS[2], ARGV[2])
return 1
`);
