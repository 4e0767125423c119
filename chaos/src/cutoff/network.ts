/**
 * Network namespaces for three servers, a client that reaches one of them alone, and a client on the
 * side of the others. Nothing of it is in the machine's own network.
 *
 *     s1 ──┐            ┌── a   a link of its own to each server, one of them up
 *     s2 ──┼── switch   │
 *     s3 ──┤            └── s1, s2, s3
 *     b  ──┘
 */
import type { ChildProcess } from 'node:child_process';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';

export const serverIds: readonly number[] = [1, 2, 3];
const clientAddress = '10.78.0.1';
const majorityAddress = '10.77.0.100';

/** Why no namespaces can be made here; undefined when they can. Makes one and removes it. */
export function namespacesUnavailable(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces are a thing of Linux';
  const probe = `cutoff-${process.pid}-probe`;
  const made = spawnSync('ip', ['netns', 'add', probe], { encoding: 'utf8' });
  if (made.error) return 'there is no `ip` program (on Debian: apt-get install -y iproute2)';
  try {
    if (made.status !== 0) return `\`ip netns add\` is refused: ${made.stderr.trim()}`;
    const link = ['-n', probe, 'link', 'add', 'one', 'type', 'bridge'];
    const bridge = spawnSync('ip', link, { encoding: 'utf8' });
    return bridge.status === 0 ? undefined : `no bridge can be made: ${bridge.stderr.trim()}`;
  } finally {
    spawnSync('ip', ['netns', 'del', probe], { stdio: 'ignore' });
  }
}

/** The names of the namespaces; several runs at a time do not meet. */
export class Network {
  readonly prefix: string;

  constructor(prefix: string) {
    this.prefix = prefix;
  }

  static addressOf(server: number): string {
    return `10.77.0.${server}`;
  }

  get #switch(): string {
    return `${this.prefix}-switch`;
  }

  /** What a process in a namespace is started under; it becomes that process. */
  command(where: 'a' | 'b' | number): readonly string[] {
    return ['ip', 'netns', 'exec', this.#nameOf(where)];
  }

  /** Takes a server's cable out of the switch. It notices nothing; what it sends is lost. */
  cut(server: number): void {
    ip('-n', this.#switch, 'link', 'set', `port-${server}`, 'nomaster');
  }

  heal(server: number): void {
    ip('-n', this.#switch, 'link', 'set', `port-${server}`, 'master', 'hub');
  }

  /** The client `a` reaches this server and nothing else. */
  letReach(server: number): void {
    for (const id of serverIds) ip('-n', this.#nameOf('a'), 'link', 'set', `to-${id}`, 'down');
    const client = this.#nameOf('a');
    ip('-n', client, 'link', 'set', `to-${server}`, 'up');
    // Routes through a link go down with it.
    ip('-n', client, 'route', 'replace', Network.addressOf(server), 'dev', `to-${server}`);
    const back = ['route', 'replace', clientAddress, 'dev', 'client'];
    ip('-n', this.#nameOf(server), ...back);
  }

  /**
   * @returns removes the network, and ends whoever still runs in it
   * @throws when the machine refuses; nothing is left then
   */
  async build(): Promise<() => Promise<void>> {
    const remove = removeAtEnd(this.#names());
    try {
      for (const name of this.#names()) ip('netns', 'add', name);
      this.#wire();
    } catch (error) {
      await remove();
      throw error;
    }
    return remove;
  }

  #wire(): void {
    const hub = this.#switch;
    ip('-n', hub, 'link', 'add', 'name', 'hub', 'type', 'bridge');
    ip('-n', hub, 'link', 'set', 'hub', 'up');
    for (const end of ['b', ...serverIds] as const) {
      const port = `port-${end}`;
      const address = end === 'b' ? majorityAddress : Network.addressOf(end as number);
      const name = this.#nameOf(end as 'b' | number);
      ip(
        '-n',
        hub,
        'link',
        'add',
        'name',
        port,
        'type',
        'veth',
        'peer',
        'name',
        'net',
        'netns',
        name,
      );
      ip('-n', hub, 'link', 'set', port, 'master', 'hub', 'up');
      ip('-n', name, 'addr', 'add', `${address}/24`, 'dev', 'net');
      ip('-n', name, 'link', 'set', 'net', 'up');
      ip('-n', name, 'link', 'set', 'lo', 'up');
    }
    const client = this.#nameOf('a');
    ip('-n', client, 'link', 'set', 'lo', 'up');
    ip('-n', client, 'addr', 'add', `${clientAddress}/32`, 'dev', 'lo');
    for (const id of serverIds) {
      const server = this.#nameOf(id);
      const link = ['type', 'veth', 'peer', 'name', 'client', 'netns', server];
      ip('-n', client, 'link', 'add', 'name', `to-${id}`, ...link);
      ip('-n', server, 'link', 'set', 'client', 'up');
    }
  }

  #nameOf(where: 'a' | 'b' | number): string {
    return `${this.prefix}-${typeof where === 'number' ? `s${where}` : where}`;
  }

  #names(): string[] {
    return [this.#switch, ...(['a', 'b', ...serverIds] as const).map((end) => this.#nameOf(end))];
  }
}

/** @throws what `ip` says */
function ip(...words: string[]): void {
  const { status, stderr, error } = spawnSync('ip', words, { encoding: 'utf8' });
  if (status === 0) return;
  throw new Error(`ip ${words.join(' ')}: ${error?.message ?? stderr.trim()}`);
}

/**
 * A shell waits for the end of its input, which comes with the end of this process, however it ends.
 * Then it ends who is in the namespaces, and removes them.
 */
function removeAtEnd(names: readonly string[]): () => Promise<void> {
  const script = `
    read -r line
    for name; do for pid in $(ip netns pids "$name"); do kill -KILL "$pid"; done; done
    for name; do ip netns del "$name"; done`;
  const shell: ChildProcess = spawn('/bin/sh', ['-c', script, 'sh', ...names], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // a Ctrl-C at the terminal must not end it before its work
    cwd: '/',
  });
  return async () => {
    if (shell.exitCode !== null) return;
    shell.stdin?.end();
    await once(shell, 'exit');
  };
}
