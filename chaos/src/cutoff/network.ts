/**
 * Three servers, each in a network namespace, around the one where this process is. A client `a` has
 * a link of its own to each server, one of them up.
 *
 *     s1 ──┐                        ┌── s1
 *     s2 ──┼── hub: this process   a┼── s2
 *     s3 ──┘                        └── s3
 */
import { spawnSync } from 'node:child_process';
import type { MemberSeat } from '@incumbent/zookeeper-testing';

const ids: readonly number[] = [1, 2, 3];
const clientAddress = '10.78.0.1';

/** To be made once, in a network of one's own, with which it ends. */
export class Network {
  readonly seats: readonly MemberSeat[];
  /** The command under which a process that reaches one server alone is started. */
  readonly behindOneServer: readonly string[] = within('a');

  /** @throws what `ip` says */
  constructor() {
    ip('link', 'set', 'lo', 'up');
    ip('link', 'add', 'name', 'hub', 'type', 'bridge');
    ip('addr', 'add', '10.77.0.254/24', 'dev', 'hub');
    ip('link', 'set', 'hub', 'up');
    ip('netns', 'add', 'a');
    ip('-n', 'a', 'link', 'set', 'lo', 'up');
    ip('-n', 'a', 'addr', 'add', `${clientAddress}/32`, 'dev', 'lo');
    this.seats = ids.map(wire);
  }

  /** Takes a server's cable out of the hub. The server notices nothing; what it sends is lost. */
  cut(server: number): void {
    ip('link', 'set', `s${server}`, 'nomaster');
  }

  heal(server: number): void {
    ip('link', 'set', `s${server}`, 'master', 'hub');
  }

  /** From now on `a` reaches this server and nothing else. */
  letReach(server: number): void {
    for (const id of ids) ip('-n', 'a', 'link', 'set', `s${id}`, 'down');
    ip('-n', 'a', 'link', 'set', `s${server}`, 'up');
    // A route goes down with its link.
    ip('-n', 'a', 'route', 'replace', addressOf(server), 'dev', `s${server}`);
    ip('-n', `s${server}`, 'route', 'replace', clientAddress, 'dev', 'client');
  }
}

function wire(id: number): MemberSeat {
  const name = `s${id}`;
  ip('netns', 'add', name);
  ip('link', 'add', 'name', name, 'type', 'veth', 'peer', 'name', 'net', 'netns', name);
  ip('link', 'set', name, 'master', 'hub', 'up');
  ip('-n', name, 'addr', 'add', `${addressOf(id)}/24`, 'dev', 'net');
  ip(
    '-n',
    'a',
    'link',
    'add',
    'name',
    name,
    'type',
    'veth',
    'peer',
    'name',
    'client',
    'netns',
    name,
  );
  for (const link of ['lo', 'net', 'client']) ip('-n', name, 'link', 'set', link, 'up');
  return { host: addressOf(id), command: within(name) };
}

function addressOf(server: number): string {
  return `10.77.0.${server}`;
}

/** The start of a command that runs in a namespace. */
function within(name: string): readonly string[] {
  return ['nsenter', `--net=/run/netns/${name}`];
}

/** @throws what `ip` says */
function ip(...words: string[]): void {
  const { status, stderr, error } = spawnSync('ip', words, { encoding: 'utf8' });
  if (status === 0) return;
  throw new Error(`ip ${words.join(' ')}: ${error?.message ?? stderr.trim()}`);
}
