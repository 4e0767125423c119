import { readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { makeServerDirectory, RedisServer, RespConnection, waitFor } from '@incumbent/servers';
import type { TestProxy } from '@incumbent/zookeeper-testing';
import { freePorts, startProxy } from '@incumbent/zookeeper-testing';
import type { GivenSettings } from '../settings.ts';
import { pingEntry } from '../stream.ts';
import type { Layout } from './layout.ts';
import { calm, password } from './layout.ts';
import type { Observation, Send } from './observe.ts';
import { observe, said } from './observe.ts';
import type { Says, Side } from './side.ts';
import { parseInfo } from './side.ts';
import type { LinkFault, Step } from './steps.ts';

interface Seat {
  readonly server: RedisServer;
  readonly directory: string;
  readonly port: number;
  isPaused: boolean;
  connection: RespConnection | undefined;
}

/** The steps on real servers. */
export class ServerSide implements Side, AsyncDisposable {
  readonly layout: Layout;
  readonly #seats: readonly Seat[];
  readonly #proxies: ReadonlyMap<string, TestProxy>;
  /** Of `#proxies`: those that do not pass everything. */
  readonly #broken = new Set<string>();
  /** Children of servers that were killed. They may never be done. */
  readonly #orphans: number[] = [];
  readonly #blocked: { connection: RespConnection; reply: string }[] = [];

  private constructor(seats: readonly Seat[], proxies: ReadonlyMap<string, TestProxy>) {
    this.#seats = seats;
    this.#proxies = proxies;
    this.layout = {
      ports: seats.map(({ port }) => port),
      ways: [...proxies].map(([key, { port }]) => {
        const [from, to] = key.split(' ').map(Number) as [number, number];
        return { from, to, port };
      }),
    };
  }

  static async open(settings: readonly GivenSettings[]): Promise<ServerSide> {
    const ports = await freePorts(settings.length);
    const seats = await Promise.all(
      settings.map(async (given, index) => seatAt(ports[index] as number, given)),
    );
    const proxies = new Map<string, TestProxy>();
    for (const from of seats.keys()) {
      for (const [to, { port }] of seats.entries()) {
        if (from !== to) proxies.set(`${from} ${to}`, await startProxy({ port }));
      }
    }
    return new ServerSide(seats, proxies);
  }

  play(step: Step): Promise<string> {
    return this.act(step);
  }

  async info(node: number): Promise<ReadonlyMap<string, string>> {
    return parseInfo(String(await (await sender(this.#seats[node] as Seat))(['INFO'])));
  }

  until(node: number, what: string, says: Says): Promise<void> {
    return waitFor(what, async () => says(await this.info(node)));
  }

  async act(step: Step): Promise<string> {
    if (step.type === 'settle') return '';
    if (step.type === 'link') {
      const key = `${step.from} ${step.to}`;
      if (step.how === 'pass') this.#broken.delete(key);
      else this.#broken.add(key);
      await setProxy(this.#proxies.get(key) as TestProxy, step.how);
      return '';
    }
    const seat = this.#seats[step.node] as Seat;
    switch (step.type) {
      case 'command':
        if (/SAVE$/.test(step.parts[0] ?? '')) await removedFiles(seat);
        return said((await sender(seat))(step.parts));
      case 'block':
        await this.#block(seat, step);
        return '';
      case 'start':
        await this.#start(seat, step.node);
        return '';
      case 'slow-copies': {
        const delay = step.areSlow ? '1000000000' : '0';
        await (await sender(seat))(['CONFIG', 'SET', 'rdb-key-save-delay', delay]);
        return '';
      }
      case 'pings':
        return '';
      case 'kill':
        await removedFiles(seat);
        this.#orphans.push(...childrenOf(seat.server.pid));
        await seat.server.kill();
        seat.connection?.close();
        seat.isPaused = false;
        return '';
      case 'stop':
        await removedFiles(seat);
        await seat.server.stop();
        return '';
      case 'pause':
        await seat.server.freeze();
        seat.isPaused = true;
        return '';
      case 'resume':
        seat.server.thaw();
        seat.isPaused = false;
        return '';
      case 'lose-data':
        await rm(dataOf(seat.directory), { recursive: true });
        await mkdir(dataOf(seat.directory));
        return '';
      case 'configure':
        await configure(seat.directory, seat.port, step.settings);
        return '';
      default:
        return step satisfies never;
    }
  }

  /** Lets PINGs come to the replicas of that node. @returns how many */
  async ping(node: number): Promise<number> {
    const send = await sender(this.#seats[node] as Seat);
    const setPeriod = (period: string | undefined) =>
      send(['CONFIG', 'SET', 'repl-ping-replica-period', period ?? '']);
    const read = async () => {
      const info = String(await send(['INFO', 'replication']));
      return Number(/master_repl_offset:(\d+)/.exec(info)?.[1]);
    };
    const before = await read();
    await setPeriod('1');
    await waitFor('a PING is sent', async () => (await read()) > before);
    await setPeriod(calm['repl-ping-replica-period']);
    return ((await read()) - before) / pingEntry.bytes;
  }

  async observe(reports: boolean): Promise<readonly Observation[]> {
    const seen = await Promise.all(
      this.#seats.map(async (seat): Promise<Observation> => {
        // It may have ended by itself: SHUTDOWN.
        if (seat.server.pid === undefined) return { state: 'down' };
        if (seat.isPaused) return { state: 'paused' };
        return observe(await sender(seat), reports);
      }),
    );
    const blocked = this.#blocked.map(({ reply }) => reply);
    return [...seen, Object.fromEntries(blocked.entries())];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { connection } of this.#blocked) connection.close();
    for (const { connection } of this.#seats) connection?.close();
    this.#orphans.push(...this.#seats.flatMap(({ server }) => childrenOf(server.pid)));
    await Promise.all(this.#seats.map(({ server }) => server.close()));
    for (const orphan of this.#orphans) kill(orphan);
    await Promise.all([...this.#proxies.values()].map((proxy) => proxy.close()));
  }

  /**
   * Nobody reaches it at first: its first PING (see `firstPings`) comes in the first millisecond.
   * Connections that a child of its former process has open are reset by that.
   */
  async #start(seat: Seat, node: number): Promise<void> {
    const open = [...this.#proxies].filter(
      ([key]) => key.endsWith(` ${node}`) && !this.#broken.has(key),
    );
    for (const [, proxy] of open) proxy.refuse();
    await seat.server.start();
    for (const [, proxy] of open) await proxy.pass();
  }

  async #block(seat: Seat, { parts, first }: Step & { readonly type: 'block' }): Promise<void> {
    if (parts[0] === 'SHUTDOWN') await removedFiles(seat);
    const connection = await open(seat);
    const entry = { connection, reply: 'waits' };
    this.#blocked.push(entry);
    for (const each of first ?? []) void said(connection.send(each));
    void said(connection.send(parts)).then((reply) => {
      entry.reply = reply;
    });
  }
}

async function seatAt(port: number, settings: GivenSettings): Promise<Seat> {
  const directory = await makeServerDirectory('redis-model');
  await mkdir(dataOf(directory));
  await configure(directory, port, settings);
  const server = new RedisServer(
    {
      program: 'redis-server',
      directory,
      arguments: [join(directory, 'redis.conf')],
      // Whatever it says, such as that one has to log in: it listens.
      isReady: async () => {
        const connection = await RespConnection.open({ port });
        await said(connection.send(['PING']));
        connection.close();
        return true;
      },
    },
    port,
    false,
  );
  return { server, directory, port, isPaused: false, connection: undefined };
}

function childrenOf(pid: number | undefined): readonly number[] {
  if (pid === undefined) return [];
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.split(' ').filter(Boolean).map(Number);
}

function kill(pid: number): void {
  try {
    // The number may have been given away since.
    const name = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    if (name.startsWith('redis-')) process.kill(pid, 'SIGKILL');
  } catch {
    // It is gone.
  }
}

function dataOf(directory: string): string {
  return join(directory, 'data');
}

async function configure(directory: string, port: number, settings: GivenSettings): Promise<void> {
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${dataOf(directory)}`,
    'loglevel notice',
    // It looks at its children more often.
    'hz 100',
    ...Object.entries(settings).map(([name, value]) => `${name} ${value === '' ? '""' : value}`),
  ];
  await writeFile(join(directory, 'redis.conf'), `${lines.join('\n')}\n`);
}

/** A file that was made for replicas is removed within a second, where that is wanted. */
async function removedFiles(seat: Seat): Promise<void> {
  if (seat.isPaused) return;
  const send = await sender(seat);
  const [, removes] = (await send(['CONFIG', 'GET', 'rdb-del-sync-files'])) as readonly string[];
  if (removes !== 'yes') return;
  const uptime = async () =>
    Number(/uptime_in_seconds:(\d+)/.exec(String(await send(['INFO', 'server'])))?.[1]);
  const before = await uptime();
  await waitFor('it has looked for such files', async () => (await uptime()) >= before + 3);
}

async function sender(seat: Seat): Promise<Send> {
  if (seat.connection?.isOpen !== true) seat.connection = await open(seat);
  const { connection } = seat;
  return (parts) => connection.send(parts);
}

async function open({ port }: Seat): Promise<RespConnection> {
  const connection = await RespConnection.open({ port });
  const greeting = await said(connection.send(['PING']));
  if (greeting.startsWith('-NOAUTH')) await connection.send(['AUTH', password]);
  return connection;
}

async function setProxy(proxy: TestProxy, how: LinkFault): Promise<void> {
  switch (how) {
    case 'pass':
      // Connections that were held go on; those that cannot are reset.
      try {
        proxy.letGo();
      } catch {
        // It held nothing.
      }
      await proxy.pass();
      return;
    case 'refuse':
      proxy.refuse();
      return;
    case 'hold-replies':
      proxy.holdReplies();
      return;
    case 'hold-requests':
      proxy.holdRequests();
      return;
    default:
      how satisfies never;
  }
}
