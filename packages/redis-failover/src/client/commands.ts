/**
 * Decides where a command goes. The names are those of Redis in capitals, without separators:
 * `OBJECT ENCODING`, `objectEncoding` and `object|encoding` are all OBJECTENCODING.
 */

/**
 * The commands that Redis 7.0 flags `readonly`, without SCAN and its like: a cursor means something
 * only to the node that gave it. A test compares this list with a real server.
 */
const readOnly: ReadonlySet<string> = words(`
  BITCOUNT BITFIELDRO BITPOS DBSIZE DUMP EVALRO EVALSHARO EXISTS EXPIRETIME FCALLRO GEODIST GEOHASH
  GEOPOS GEORADIUSRO GEORADIUSBYMEMBERRO GEOSEARCH GET GETBIT GETRANGE HEXISTS HGET HGETALL HKEYS HLEN
  HMGET HRANDFIELD HSTRLEN HVALS KEYS LCS LINDEX LLEN LOLWUT LPOS LRANGE MEMORYUSAGE MGET
  OBJECTENCODING OBJECTFREQ OBJECTIDLETIME OBJECTREFCOUNT PEXPIRETIME PFCOUNT PTTL RANDOMKEY SCARD SDIFF
  SINTER SINTERCARD SISMEMBER SMEMBERS SMISMEMBER SORTRO SRANDMEMBER STRLEN SUBSTR SUNION TOUCH TTL TYPE
  XINFOCONSUMERS XINFOGROUPS XINFOSTREAM XLEN XPENDING XRANGE XREAD XREVRANGE ZCARD ZCOUNT ZDIFF ZINTER
  ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE
  ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCORE ZUNION
`);

/**
 * Methods of node-redis that are one of the above with an argument, and have a name of their own.
 */
const readOnlyForms: ReadonlySet<string> = words(`
  GEORADIUSROWITH GEORADIUSBYMEMBERROWITH GEOSEARCHWITH HRANDFIELDCOUNT HRANDFIELDCOUNTWITHVALUES
  LCSIDX LCSIDXWITHMATCHLEN LCSLEN LPOSCOUNT SRANDMEMBERCOUNT XPENDINGRANGE ZDIFFWITHSCORES
  ZINTERWITHSCORES ZRANDMEMBERCOUNT ZRANDMEMBERCOUNTWITHSCORES ZRANGEBYSCOREWITHSCORES ZRANGEWITHSCORES
  ZRANKWITHSCORE ZUNIONWITHSCORES
`);

/** The second word of these commands is part of the name. */
const containers: ReadonlySet<string> = words(`
  ACL CLIENT CLUSTER COMMAND CONFIG FUNCTION HIMPORT LATENCY MEMORY MODULE OBJECT PUBSUB SCRIPT SLOWLOG XGROUP XINFO
`);

const wayOut = {
  own: 'use a connection of your own: await failover.dedicated()',
  multi: 'use multi(), which keeps its commands together',
} as const;

/** These block all other callers on the shared connection. */
const blocking: ReadonlySet<string> = words(`
  BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN
`);
/** These change the state of one connection, or depend on it. */
const stateful: ReadonlySet<string> = words(`
  ASKING AUTH CLIENTCACHING CLIENTNOEVICT CLIENTNOTOUCH CLIENTREPLY CLIENTSETINFO CLIENTSETNAME
  CLIENTTRACKING CLIENTTRACKINGOFF CLIENTTRACKINGON HELLO
  HIMPORTDISCARD HIMPORTDISCARDALL HIMPORTPREPARE MONITOR PSUBSCRIBE PSYNC PUNSUBSCRIBE READONLY READWRITE REPLCONF RESET SELECT
  SCRIPTDEBUG SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE SYNC UNSUBSCRIBE UNWATCH WATCH
`);
const transactional: ReadonlySet<string> = words('DISCARD EXEC MULTI');
/**
 * These change roles. The last two pause writes and let them go, which a move of the primary does,
 * too.
 */
const roles: ReadonlySet<string> = words('FAILOVER REPLICAOF SLAVEOF CLIENTPAUSE CLIENTUNPAUSE');
const ends: ReadonlySet<string> = words('DISCONNECT END QUIT');
const scripts: ReadonlySet<string> = words('EVAL EVALSHA FCALL EVALRO EVALSHARO FCALLRO');

const none: ReadonlySet<string> = new Set();

export type Destination = 'any' | 'primary';

export interface Command {
  /** The name for messages, such as `XINFO STREAM`, or the method that was called. */
  readonly label: string;
  readonly goesTo: Destination;
  /** Why the command cannot be routed, and what to do instead. */
  readonly refused: string | undefined;
  /**
   * Whether it runs the caller's code on the server. An error of that may come after a part was
   * done.
   */
  readonly isScript: boolean;
}

/**
 * @param label the method that was called, or the words of the command
 * @param args the arguments. The second word of a container, and BLOCK, are looked for there
 * @param pinned whether the call goes over one connection of one term, where WAIT has a meaning
 * @param own names of scripts and functions that the caller has added. They win over names of Redis
 */
export function classify(
  label: string,
  args: readonly unknown[],
  pinned = false,
  own: ReadonlySet<string> = none,
): Command {
  const word = normalize(label);
  const second = textOf(args[0]);
  const name = containers.has(word) && second !== undefined ? word + normalize(second) : word;
  const isOwn = own.has(label);
  const isRead = !isOwn && (readOnly.has(name) || readOnlyForms.has(name));
  const refused = refusalOf(word, name, args, pinned);
  return {
    label,
    goesTo: isRead ? 'any' : 'primary',
    refused: isOwn ? undefined : refused,
    // A command of a module or a library may run anything, too.
    isScript: isOwn || scripts.has(word) || label.includes('.'),
  };
}

function refusalOf(
  word: string,
  name: string,
  args: readonly unknown[],
  pinned: boolean,
): string | undefined {
  if (blocking.has(word)) return `it blocks all others on a shared connection; ${wayOut.own}`;
  if ((word === 'XREAD' || word === 'XREADGROUP') && args.some(saysBlock)) {
    return `with BLOCK it blocks all others on a shared connection; ${wayOut.own}`;
  }
  if (stateful.has(word) || stateful.has(name)) {
    return `it belongs to one connection, and a routed client has none; ${wayOut.own}`;
  }
  if (transactional.has(word)) return `it belongs to one connection; ${wayOut.multi}`;
  if ((word === 'WAIT' || word === 'WAITAOF') && !pinned) {
    return (
      'it counts the writes of one connection, which may be another by now; ' +
      'use failover.write(async (redis) => { …; await redis.wait(1, 500); })'
    );
  }
  if (roles.has(word) || roles.has(name))
    return 'the managers decide who is primary; use failover.manualFailover()';
  if (ends.has(word)) return 'the connections are not yours to end; use failover.close()';
  return undefined;
}

/** `BLOCK 0` among the words, or `{ BLOCK: 0 }` among the options. */
function saysBlock(value: unknown): boolean {
  const text = textOf(value);
  if (text !== undefined) return text.toUpperCase() === 'BLOCK';
  if (Array.isArray(value)) return value.some(saysBlock);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, each]) => saysBlock(key) && each !== undefined);
}

/** A word of a command as text; undefined for anything else. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return value instanceof Uint8Array ? Buffer.from(value).toString() : undefined;
}

/** `hGetBuffer`, `HGET`, `hget` → HGET. */
function normalize(label: string): string {
  const word = label.toUpperCase().replaceAll(/[^A-Z0-9]/g, '');
  // ioredis has each method twice.
  return label.endsWith('Buffer') ? word.slice(0, -'BUFFER'.length) : word;
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}
