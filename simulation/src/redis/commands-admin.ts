import type { Client } from './client.ts';
import type { Call } from './commands.ts';
import { infoText } from './info.ts';
import type { Reply } from './reply.ts';
import { ErrorReply } from './reply.ts';
import type { Server } from './server.ts';

export function infoCommand(server: Server): Reply {
  return infoText(server);
}

export function roleCommand(server: Server): Reply {
  const { upstream, history, downstream } = server;
  if (upstream === undefined) {
    const online = downstream.attached.filter(({ state }) => state === 'online');
    return [
      'master',
      history.offset,
      online.map(({ client, ackOffset }) => [
        client.peer,
        `${client.listeningPort}`,
        `${ackOffset}`,
      ]),
    ];
  }
  const state = upstream.state === 'transfer' ? 'sync' : upstream.state;
  return ['slave', upstream.host, upstream.port, state, upstream.master?.offset ?? -1];
}

export function configCommand({ server, parts }: Call): Reply {
  const [, subcommand = '', ...rest] = parts;
  switch (subcommand.toUpperCase()) {
    case 'GET': {
      const pairs = rest.flatMap((pattern) => server.settings.match(pattern));
      return rest.includes('replicaof') ? [...pairs, 'replicaof', replicaOf(server) ?? ''] : pairs;
    }
    case 'SET':
      return setAll(server, rest);
    case 'REWRITE': {
      const replicaof = replicaOf(server);
      server.machine.configuration = {
        ...server.settings.changed(),
        ...(replicaof === undefined ? {} : { replicaof }),
      };
      return 'OK';
    }
    default:
      return new ErrorReply(`ERR unknown subcommand '${subcommand}'. Try CONFIG HELP.`);
  }
}

function setAll(server: Server, pairs: readonly string[]): Reply {
  if (pairs.length === 0 || pairs.length % 2 === 1) return new ErrorReply('ERR syntax error');
  for (let at = 0; at < pairs.length; at += 2) {
    const [name, value] = [pairs[at] as string, pairs[at + 1] as string];
    try {
      applySetting(server, server.settings.set(name, value));
    } catch (error) {
      if (error instanceof RangeError) return new ErrorReply(`ERR ${error.message}`);
      throw error;
    }
  }
  return 'OK';
}

function applySetting(server: Server, name: string): void {
  const { settings, aof, backlog, downstream } = server;
  if (name === 'appendonly' && settings.isOn(name)) aof.start();
  if (name === 'appendonly' && !settings.isOn(name)) aof.stop();
  if (name === 'repl-backlog-size') backlog?.resize(settings.count(name));
  if (name.startsWith('min-replicas')) downstream.countGood();
}

function replicaOf({ upstream }: Server): string | undefined {
  return upstream === undefined ? undefined : `${upstream.host} ${upstream.port}`;
}

export function clientCommand({ server, client, parts }: Call): Reply | undefined {
  const [, subcommand = '', ...rest] = parts;
  switch (subcommand.toUpperCase()) {
    case 'ID':
      return client.id;
    case 'GETNAME':
      return client.name === '' ? null : client.name;
    case 'SETNAME':
      client.name = rest[0] ?? '';
      return 'OK';
    case 'LIST':
      return list(server);
    case 'KILL':
      return kill(server, client, rest);
    case 'PAUSE':
      server.pauses.pause(Number(rest[0]), rest[1]?.toUpperCase() !== 'WRITE');
      return 'OK';
    case 'UNPAUSE':
      server.pauses.unpause();
      return 'OK';
    default:
      return new ErrorReply(`ERR unknown subcommand '${subcommand}'. Try CLIENT HELP.`);
  }
}

function list({ clients, machine }: Server): string {
  const lines = [...clients.values()].map((client) => {
    const { id, peer, name, lastCommand } = client;
    const fields = [
      `id=${id}`,
      `addr=${peer}:0`,
      `laddr=${machine.host}:${machine.port}`,
      `name=${name}`,
      `flags=${flagsOf(client)}`,
      'db=0',
      `cmd=${lastCommand}`,
    ];
    return `${fields.join(' ')}\n`;
  });
  return lines.join('');
}

function flagsOf({ replica, blocked, transaction }: Client): string {
  const flags = [
    replica === undefined ? '' : 'S',
    blocked === undefined ? '' : 'b',
    transaction === undefined ? '' : 'x',
  ].join('');
  return flags === '' ? 'N' : flags;
}

/** CLIENT KILL ID n, and CLIENT KILL TYPE replica or master. */
function kill(server: Server, client: Client, words: readonly string[]): Reply | undefined {
  const [how, id] = words.map((word) => word.toUpperCase());
  if (how === 'TYPE' && id === 'MASTER') return server.upstream?.drop() === true ? 1 : 0;
  if (how === 'TYPE' && (id === 'REPLICA' || id === 'SLAVE')) {
    const replicas = [...server.clients.values()].filter(({ replica }) => replica !== undefined);
    for (const replica of replicas) server.drop(replica);
    return replicas.length;
  }
  if (how !== 'ID') return new ErrorReply('ERR syntax error');
  const target = server.clients.get(Number(id));
  if (target === undefined) return 0;
  if (target === client) {
    // Answered first.
    client.answer(1);
    server.drop(client);
    return undefined;
  }
  server.drop(target);
  return 1;
}
