import type { Server } from './server.ts';

/** The answer to one of the words that may stand in place of any frame. */
export function answerFourLetterWord(server: Server, chunk: Uint8Array): Uint8Array | undefined {
  const answer = answerOf(server, new TextDecoder('latin1').decode(chunk.subarray(0, 4)));
  return answer === undefined ? undefined : new TextEncoder().encode(answer);
}

const version = '3.8.0-fake, built on 2000-01-01 00:00 UTC';
/** Words of 3.8 that need a whitelist there. No test has needed their answers yet. */
const refused: ReadonlySet<string> = new Set([
  ...['conf', 'cons', 'crst', 'dirs', 'dump', 'gtmk', 'hash', 'mntr', 'srst', 'stat', 'stmk'],
]);

function answerOf(server: Server, word: string): string | undefined {
  switch (word) {
    case 'isro':
      return server.isReadOnly ? 'ro' : 'rw';
    case 'ruok':
      return 'imok';
    case 'srvr':
      return lines([
        `Zookeeper version: ${version}`,
        ...['Latency min/avg/max: 0/0.0/0', 'Received: 0', 'Sent: 0'],
        ...[`Connections: ${server.connections.size}`, 'Outstanding: 0'],
        `Zxid: 0x${server.zxid.toString(16)}`,
        `Mode: ${server.isReadOnly ? 'read-only' : 'standalone'}`,
        `Node count: ${[...server.tree.entries()].length}`,
      ]);
    case 'envi':
      return lines(['Environment:', `zookeeper.version=${version}`, 'host.name=localhost']);
    case 'wchs': {
      const { byPath, bySession } = dataWatches(server);
      const total = [...byPath.values()].reduce((sum, sessions) => sum + sessions.length, 0);
      return lines([
        `${bySession.size} connections watching ${byPath.size} paths`,
        `Total watches:${total}`,
      ]);
    }
    case 'wchp':
      return groups(dataWatches(server).byPath);
    case 'wchc':
      return groups(dataWatches(server).bySession);
    default:
      return refused.has(word)
        ? lines([`${word} is not executed because it is not in the whitelist.`])
        : undefined;
  }
}

/** Of data only: these words of 3.8 are silent about watches of children. */
function dataWatches(server: Server): {
  readonly byPath: ReadonlyMap<string, readonly string[]>;
  readonly bySession: ReadonlyMap<string, readonly string[]>;
} {
  const byPath = new Map<string, string[]>();
  const bySession = new Map<string, string[]>();
  for (const connection of server.connections) {
    const session = `0x${connection.sessionId.toString(16)}`;
    for (const [kind, path] of server.watches.of(connection)) {
      if (kind !== 'data') continue;
      byPath.set(path, [...(byPath.get(path) ?? []), session]);
      bySession.set(session, [...(bySession.get(session) ?? []), path]);
    }
  }
  return { byPath, bySession };
}

function groups(map: ReadonlyMap<string, readonly string[]>): string {
  return lines([
    ...[...map].flatMap(([head, members]) => [head, ...members.map((one) => `\t${one}`)]),
    '',
  ]);
}

function lines(all: readonly string[]): string {
  return all.map((line) => `${line}\n`).join('');
}
