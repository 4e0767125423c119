import type { Client } from './client.ts';
import { clientCommand, configCommand, infoCommand, roleCommand } from './commands-admin.ts';
import type { Reply } from './reply.ts';
import { ErrorReply, said } from './reply.ts';
import type { Server } from './server.ts';

/** One call of a command. */
export interface Call {
  readonly server: Server;
  readonly client: Client;
  readonly parts: readonly string[];
  /** Nothing blocks in one. */
  readonly isInTransaction: boolean;
  /** The command is to reach replicas, as it is given here. */
  readonly propagate: (parts: readonly string[]) => void;
}

/** The flags are those of `COMMAND INFO`. */
export interface Command {
  readonly leastParts: number;
  readonly isWrite: boolean;
  /** It waits while writes are paused. */
  readonly mayReplicate: boolean;
  readonly runsWhileLoading: boolean;
  /** Its server serves the data of before while it loads others. */
  readonly runsBesideLoading: boolean;
  /** On a replica without its primary that is told to serve no stale data. */
  readonly runsStale: boolean;
  readonly needsNoAuth: boolean;
  readonly isNoTransaction: boolean;
  /** It is not queued behind MULTI. */
  readonly runsInTransaction: boolean;
  /** @returns undefined if it answers later, or never */
  readonly run: (call: Call) => Reply | undefined;
  /** The command's effect where it comes from the primary. */
  readonly apply?: (server: Server, parts: readonly string[]) => void;
}

type Flag =
  | 'write'
  | 'loading'
  | 'stale'
  | 'no-auth'
  | 'no-multi'
  | 'no-async-loading'
  | 'may-replicate'
  | 'transaction';

function command(
  leastParts: number,
  flags: readonly Flag[],
  run: Command['run'],
  apply?: Command['apply'],
): Command {
  const has = (flag: Flag) => flags.includes(flag);
  return {
    leastParts,
    isWrite: has('write'),
    mayReplicate: has('write') || has('may-replicate'),
    runsWhileLoading: has('loading'),
    runsBesideLoading: !has('no-async-loading'),
    runsStale: has('stale'),
    needsNoAuth: has('no-auth'),
    isNoTransaction: has('no-multi'),
    runsInTransaction: has('transaction'),
    run,
    ...(apply === undefined ? {} : { apply }),
  };
}

export function findCommand(name: string): Command | undefined {
  return commands.get(name);
}

const anywhere: readonly Flag[] = ['loading', 'stale'];

const commands: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['ping', command(1, [], ({ parts }) => parts[1] ?? 'PONG')],
  ['echo', command(2, [], ({ parts }) => parts[1] as string)],
  ['auth', command(2, [...anywhere, 'no-auth'], authenticate)],
  ['select', command(2, anywhere, select)],
  ['info', command(1, anywhere, ({ server }) => infoCommand(server))],
  ['role', command(1, anywhere, ({ server }) => roleCommand(server))],
  ['config', command(2, anywhere, (call) => configCommand(call))],
  ['client', command(2, anywhere, (call) => clientCommand(call))],
  ['replicaof', command(3, ['stale', 'no-async-loading'], replicaOf)],
  ['slaveof', command(3, ['stale', 'no-async-loading'], replicaOf)],
  ['get', command(2, [], ({ server, parts }) => server.data.get(parts[1] as string) ?? null)],
  [
    'mget',
    command(2, [], ({ server, parts }) =>
      parts.slice(1).map((key) => server.data.get(key) ?? null),
    ),
  ],
  ['exists', command(2, [], ({ server, parts }) => countOf(server, parts))],
  ['dbsize', command(1, [], ({ server }) => server.data.size)],
  ['keys', command(2, [], ({ server, parts }) => matching(server, parts[1] as string))],
  ['set', command(3, ['write'], set, applySet)],
  ['incr', command(2, ['write'], increment, applyIncrement)],
  ['del', command(2, ['write'], remove, applyRemove)],
  ['flushall', command(1, ['write'], flushAll, applyFlushAll)],
  ['publish', command(3, [...anywhere, 'may-replicate'], publish)],
  ['xread', command(4, [], read)],
  ['wait', command(3, [], wait)],
  ['multi', command(1, [...anywhere, 'transaction'], begin)],
  ['exec', command(1, [...anywhere, 'transaction'], end)],
  ['discard', command(1, [...anywhere, 'transaction'], discard)],
  ['save', command(1, ['no-async-loading', 'no-multi'], save)],
  ['bgsave', command(1, ['no-async-loading'], saveInBackground)],
  ['shutdown', command(1, [...anywhere, 'no-multi'], shutdown)],
  ['replconf', command(1, anywhere, replicaSays)],
  ['psync', command(3, ['no-async-loading', 'no-multi'], sync)],
  ['sync', command(1, ['no-async-loading', 'no-multi'], sync)],
]);

const ok = 'OK';
const syntaxError = new ErrorReply('ERR syntax error');

function authenticate({ server, client, parts }: Call): Reply {
  const password = server.settings.text('requirepass');
  if (parts.length === 2 && password === '') {
    return new ErrorReply(
      'ERR AUTH <password> called without any password configured for the default user. ' +
        'Are you sure your configuration is correct?',
    );
  }
  const isUser = parts.length === 2 || parts[1] === 'default';
  const isRight = password === '' || parts.at(-1) === password;
  if (!isUser || !isRight) return said.wrongPass;
  client.isAuthenticated = true;
  return ok;
}

function select({ parts }: Call): Reply {
  return parts[1] === '0' ? ok : new ErrorReply('ERR DB index is out of range');
}

function replicaOf({ server, client, parts }: Call): Reply {
  const [, host = '', port = ''] = parts;
  if (host.toLowerCase() === 'no' && port.toLowerCase() === 'one') {
    server.lead(client.peer);
    return ok;
  }
  if (client.replica !== undefined) {
    return new ErrorReply('ERR Command is not valid when client is a replica.');
  }
  if (!/^\d+$/.test(port) || Number(port) > 65_535)
    return new ErrorReply('ERR Invalid master port');
  const { upstream } = server;
  const isSame =
    upstream?.host.toLowerCase() === host.toLowerCase() && upstream.port === Number(port);
  if (isSame) return 'OK Already connected to specified master';
  server.follow(host, Number(port), client.peer);
  return ok;
}

function countOf({ data }: Server, [, ...keys]: readonly string[]): number {
  return keys.filter((key) => data.get(key) !== undefined).length;
}

function matching({ data }: Server, pattern: string): string[] {
  const expression = new RegExp(`^${pattern.replaceAll('*', '.*').replaceAll('?', '.')}$`);
  return data.keys.filter((key) => expression.test(key));
}

function set({ server, parts, propagate }: Call): Reply {
  const [, key, , ...options] = parts as readonly [string, string, string, ...string[]];
  const words = options.map((option) => option.toUpperCase());
  if (words.some((word) => word !== 'NX' && word !== 'XX')) return syntaxError;
  const isThere = server.data.get(key) !== undefined;
  if ((words.includes('NX') && isThere) || (words.includes('XX') && !isThere)) return null;
  applySet(server, parts);
  server.machine.watcher?.wrote(key);
  propagate(parts);
  return ok;
}

function applySet(server: Server, parts: readonly string[]): void {
  server.put(parts[1] as string, parts[2] as string);
}

function increment({ server, parts, propagate }: Call): Reply {
  const key = parts[1] as string;
  const before = server.data.get(key) ?? '0';
  if (!/^-?\d+$/.test(before)) {
    return new ErrorReply('ERR value is not an integer or out of range');
  }
  applyIncrement(server, parts);
  propagate(parts);
  return Number(before) + 1;
}

function applyIncrement(server: Server, [, key = '']: readonly string[]): void {
  server.put(key, `${Number(server.data.get(key) ?? '0') + 1}`);
}

function remove({ server, parts, propagate }: Call): Reply {
  const before = server.data.size;
  applyRemove(server, parts);
  const count = before - server.data.size;
  if (count > 0) propagate(parts);
  return count;
}

function applyRemove(server: Server, [, ...keys]: readonly string[]): void {
  for (const key of keys) if (server.data.get(key) !== undefined) server.put(key, undefined);
}

/** It is in the file at once, before it is in the stream (`flushAllDataAndResetRDB`). */
function flushAll({ server, parts, propagate }: Call): Reply {
  applyFlushAll(server);
  propagate(parts);
  return ok;
}

function applyFlushAll(server: Server): void {
  for (const key of server.data.keys) server.put(key, undefined);
  if (server.children.isSaving) server.children.kill();
  if (server.settings.savePoints.length > 0) server.save();
}

function publish({ parts, propagate }: Call): Reply {
  propagate(parts);
  return 0;
}

/** There are no streams here: a read that blocks ends with its time, or with the role of the node. */
function read({ server, client, parts, isInTransaction }: Call): Reply | undefined {
  const at = parts.findIndex((part) => part.toUpperCase() === 'BLOCK');
  if (at < 0 || isInTransaction) return null;
  const ms = Number(parts[at + 1]);
  const unblock = server.block(client, { by: 'read' });
  if (ms > 0) server.after(ms, () => unblock(null));
  return undefined;
}

function wait({ server, client, parts, isInTransaction }: Call): Reply | undefined {
  if (server.upstream !== undefined) {
    return new ErrorReply(
      'ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a ' +
        'replica is configured to be writable (which is not the default) writes to replicas are just ' +
        'local and are not propagated.',
    );
  }
  const [replicas, ms] = [Number(parts[1]), Number(parts[2])];
  const offset = client.writtenOffset;
  const count = server.downstream.countAcknowledged(offset);
  if (count >= replicas || isInTransaction) return count;
  const unblock = server.block(client, { by: 'wait', offset, replicas });
  if (ms > 0) server.after(ms, () => unblock(server.downstream.countAcknowledged(offset)));
  server.wantAcknowledgements();
  return undefined;
}

function begin({ client }: Call): Reply {
  if (client.transaction !== undefined) return new ErrorReply('ERR MULTI calls can not be nested');
  client.transaction = { commands: [], isBroken: false };
  return ok;
}

function end(call: Call): Reply {
  const { client } = call;
  const { transaction } = client;
  if (transaction === undefined) return new ErrorReply('ERR EXEC without MULTI');
  client.transaction = undefined;
  if (transaction.isBroken) {
    return new ErrorReply('EXECABORT Transaction discarded because of previous errors.');
  }
  return transaction.commands.map((parts) => {
    const queued = findCommand((parts[0] ?? '').toLowerCase());
    return queued?.run({ ...call, parts, isInTransaction: true }) ?? null;
  });
}

function discard({ client }: Call): Reply {
  if (client.transaction === undefined) return new ErrorReply('ERR DISCARD without MULTI');
  client.transaction = undefined;
  return ok;
}

function save({ server }: Call): Reply {
  if (server.children.isSaving) {
    return new ErrorReply('ERR Background save already in progress');
  }
  server.save();
  return ok;
}

function saveInBackground({ server }: Call): Reply {
  if (server.children.isSaving) {
    return new ErrorReply('ERR Background save already in progress');
  }
  if (server.children.current !== undefined) {
    return new ErrorReply(
      "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in " +
        'order to schedule a BGSAVE whenever possible.',
    );
  }
  server.saveInBackground();
  return 'Background saving started';
}

function shutdown({ server, client, parts }: Call): Reply | undefined {
  const words = parts.slice(1).map((part) => part.toUpperCase());
  const saves = words.includes('SAVE') ? true : words.includes('NOSAVE') ? false : undefined;
  server.block(client, { by: 'shutdown' });
  server.shutdown.begin({ saves, client, now: words.includes('NOW') });
  return undefined;
}

function replicaSays({ server, client, parts }: Call): Reply | undefined {
  const option = parts[1]?.toLowerCase();
  if (option === 'ack') {
    server.downstream.acknowledge(client, Number(parts[2]));
    return undefined;
  }
  if (option === 'listening-port') client.listeningPort = Number(parts[2]);
  return ok;
}

function sync({ server, client, parts }: Call): Reply | undefined {
  const [name, replId = '', offset] = parts;
  const asked = name?.toLowerCase() === 'sync' ? undefined : { replId, offset: Number(offset) };
  return server.downstream.sync(client, asked);
}
