/**
 * A namespace for each server, wired to one where everything else of the run is. All of it is in a
 * namespace of this process, with a `/run` of its own for the names. So nothing of it is in the
 * machine's own network, and nothing can be left behind: it ends with its last process.
 *
 *     s1 ──┐
 *     s2 ──┼── hub: this process, its proxies, the candidates
 *     s3 ──┘
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';

const insideVariable = 'INCUMBENT_CHAOS_NETWORK';
const ownRun = 'mount -t tmpfs none /run && mkdir /run/netns';

/** The packets that a server loses: all from the other servers, all to them, or both. */
export type Loss = 'both' | 'in' | 'out';

/** A server that has a namespace: by its number, from 1. */
export interface Member {
  readonly id: number;
  readonly host: string;
  /** Numbers of ports, whatever they are for: what it tells the other servers. */
  readonly peerPorts: object;
}

/** Where a server is to be, and what its program is started under. */
export interface Seat {
  readonly host: string;
  readonly command: readonly string[];
}

/** Whether this process is in a network of its own already. */
export function isInside(): boolean {
  return process.env[insideVariable] === 'own';
}

/** Why no network of one's own can be had here; undefined when it can. */
export function networkUnavailable(): string | undefined {
  if (isInside()) return undefined;
  if (process.platform !== 'linux') return 'network namespaces are a thing of Linux';
  const wiring =
    'ip link add name one type veth peer name two && ip link add name three type bridge && ' +
    'ip netns add four && nft add table inet cut';
  const [program, ...words] = unshare(['/bin/sh', '-c', `${ownRun} && ${wiring}`]);
  const { error, status, stderr } = spawnSync(program, words, { encoding: 'utf8' });
  if (error !== undefined) return 'there is no `unshare` program (on Debian: util-linux)';
  return status === 0
    ? undefined
    : `network namespaces cannot be made: ${stderr.trim().split('\n', 1)[0]}`;
}

/** Runs this program again in a network of its own. @returns its exit code */
export async function runInside(): Promise<number> {
  const self = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const [program, ...words] = unshare(['/bin/sh', '-c', `${ownRun} && exec "$@"`, 'sh', ...self]);
  const child = spawn(program, words, {
    // It ends when the channel does, however we end.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, [insideVariable]: 'own' },
  });
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => child.kill(name));
  }
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}

/** Inside: ends this process when the one that started it is gone. */
export function endWithStarter(): void {
  process.once('disconnect', () => process.exit(1));
  process.channel?.unref();
}

function unshare(command: readonly string[]): [program: string, ...words: string[]] {
  // A user who is not root may do so in a namespace of users.
  const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
  return ['unshare', ...user, '--net', '--mount', ...command];
}

/** Inside: the wires, and who is parted from whom. */
export class Network {
  readonly seats: readonly Seat[];
  readonly #parted = new Set<Member>();

  /** @throws what `ip` says */
  constructor(servers: number) {
    run('ip', 'link', 'set', 'lo', 'up');
    run('ip', 'link', 'add', 'name', 'hub', 'type', 'bridge');
    run('ip', 'addr', 'add', '10.77.0.254/24', 'dev', 'hub');
    run('ip', 'link', 'set', 'hub', 'up');
    this.seats = Array.from({ length: servers }, (_none, index) => wire(index + 1));
  }

  /** Whether the quorum has to do without it. */
  isParted(member: Member): boolean {
    return this.#parted.has(member);
  }

  /**
   * Parts a server from the others: packets of their ports are lost, those of its clients are not. So
   * it may go on answering them for a while.
   */
  part(member: Member, others: readonly Member[], loss: Loss): void {
    this.#parted.add(member);
    const ports = [member, ...others].flatMap(
      ({ peerPorts }) => Object.values(peerPorts) as number[],
    );
    const set = `{ ${ports.join(', ')} }`;
    const hosts = `{ ${others.map(({ host }) => host).join(', ')} }`;
    const drop = (hook: string, side: string) =>
      ['sport', 'dport'].map(
        (end) => `add rule inet cut ${hook} ip ${side} ${hosts} tcp ${end} ${set} drop`,
      );
    const rules = [
      'add table inet cut',
      'add chain inet cut i { type filter hook input priority 0; }',
      'add chain inet cut o { type filter hook output priority 0; }',
      ...(loss === 'out' ? [] : drop('i', 'saddr')),
      ...(loss === 'in' ? [] : drop('o', 'daddr')),
    ];
    run(...inside(member.id), 'nft', rules.join('; '));
  }

  heal(member: Member): void {
    if (!this.#parted.delete(member)) return;
    run(...inside(member.id), 'nft', 'delete table inet cut');
  }
}

function wire(id: number): Seat {
  const name = `s${id}`;
  const host = `10.77.0.${id}`;
  run('ip', 'netns', 'add', name);
  run('ip', 'link', 'add', 'name', name, 'type', 'veth', 'peer', 'name', 'net', 'netns', name);
  run('ip', 'link', 'set', name, 'master', 'hub', 'up');
  run('ip', '-n', name, 'addr', 'add', `${host}/24`, 'dev', 'net');
  for (const link of ['lo', 'net']) run('ip', '-n', name, 'link', 'set', link, 'up');
  return { host, command: inside(id) };
}

/** The start of a command that becomes a process in the namespace of a server. */
function inside(id: number): string[] {
  return ['nsenter', `--net=/run/netns/s${id}`];
}

function run(...command: readonly string[]): void {
  const [program = '', ...words] = command;
  const { status, stderr, error } = spawnSync(program, words, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command.join(' ')}: ${error?.message ?? stderr.trim()}`);
}
