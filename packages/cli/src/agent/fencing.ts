/** How an agent makes sure that the service of a leader that ended unclean is not active. */
import type { UncleanLeader } from 'incumbent';
import { UsageError } from '../failure.ts';
import type { ProgramSpec } from '../guard/index.ts';
import type { CallContext } from './calls.ts';
import { killListenerScript } from './kill-listener.ts';
import type { Machine } from './machine.ts';
import { isOnThis, metadataKeys } from './machine.ts';

export interface Place {
  readonly host: string;
  readonly port: number;
}

/** `name`: for events and errors. That of a command is not its text, which may hold a password. */
export type FenceMethod =
  | { readonly kind: 'shell'; readonly name: string; readonly command: string }
  | {
      readonly kind: 'sshfence';
      readonly name: string;
      readonly user: string | undefined;
      /** The one service that this method is for. Undefined: the address that the leader told. */
      readonly at: Place | undefined;
    };

const howTo =
  'write sshfence:USER@HOST:PORT, sshfence:USER@ (the address that the leader told), or shell:COMMAND';

/**
 * @param text the value of `--fence`
 * @param index its place among them
 * @throws UsageError
 */
export function parseFence(text: string, index: number): FenceMethod {
  const shell = /^shell:([\s\S]*)$/.exec(text);
  if (shell !== null) {
    const command = shell[1] ?? '';
    if (command.trim() === '') throw new UsageError(`--fence "${text}" has no command: ${howTo}`);
    return { kind: 'shell', name: `shell (--fence ${index + 1})`, command };
  }
  const ssh = /^sshfence(?::(?:([A-Za-z0-9_][A-Za-z0-9_.-]*)@)?(.*))?$/.exec(text);
  if (ssh === null) throw new UsageError(`--fence "${text}" is no method: ${howTo}`);
  const [, user, address = ''] = ssh;
  if (address === '') return { kind: 'sshfence', name: text, user, at: undefined };
  const at = parsePlace(address);
  if (at === undefined) {
    throw new UsageError(`--fence "${text}" names no HOST:PORT after the user: ${howTo}`);
  }
  return { kind: 'sshfence', name: text, user, at };
}

/** Strict, because a host is handed to ssh: one that begins with "-" would be an option. */
export function parsePlace(address: string): Place | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9][A-Za-z0-9._-]*)):(\d{1,5})$/.exec(address);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port < 1 || port > 65_535) return undefined;
  return { host, port };
}

export interface SshOptions {
  /** Values of `-o`, before ours: ssh takes the first. */
  readonly options: readonly string[];
  readonly connectTimeoutMs: number;
}

/**
 * The method as a program for one target.
 * @returns the reason why this method cannot fence that target, as `unusable`
 */
export function fenceProgram(
  method: FenceMethod,
  target: UncleanLeader,
  { env, cwd }: CallContext,
  ssh: SshOptions,
  own: Machine,
): ProgramSpec | { readonly unusable: string } {
  if (method.kind === 'shell') {
    const more = targetVariables(target);
    return { program: '/bin/sh', args: ['-c', method.command], env: { ...env, ...more }, cwd };
  }
  const places = target.addresses.flatMap((address) => parsePlace(address) ?? []);
  const { at } = method;
  // The wrong process would die, and the right one would count as fenced.
  if (at !== undefined && !places.some((one) => samePlace(one, at))) {
    const told = target.addresses.length === 0 ? 'no address' : target.addresses.join(' ');
    return { unusable: `it is for ${at.host}:${at.port}, and "${target.id}" told ${told}` };
  }
  const place = at ?? places[0];
  if (place === undefined) {
    return { unusable: `"${target.id}" told no address of the form HOST:PORT (--address)` };
  }
  if (isLoopback(place) && !isOnThis(own, target.metadata)) {
    return {
      unusable:
        `"${target.id}" told ${place.host}:${place.port}, which here means this machine: give its agent ` +
        'an --address that other machines reach',
    };
  }
  // All that it listens at on that machine.
  const ports =
    at === undefined ? places.filter(({ host }) => sameHost(host, place.host)) : [place];
  const told = target.metadata[metadataKeys.machine] ?? '';
  // It becomes a part of a command.
  const digest = /^[0-9a-f]{32}$/.test(told) ? told : '';
  const kills = ports.map(({ port }) => `sh -c '${killListenerScript}' fence ${port} ${digest}`);
  const seconds = Math.max(1, Math.ceil(ssh.connectTimeoutMs / 1_000));
  const options = [...ssh.options, 'BatchMode=yes', `ConnectTimeout=${seconds}`];
  const args = [
    ...options.flatMap((option) => ['-o', option]),
    ...(method.user === undefined ? [] : ['-l', method.user]),
    '--',
    place.host,
    kills.join(' && '),
  ];
  return { program: 'ssh', args, env, cwd };
}

/** The ports that sshfence would look at, for a leader that told these addresses. */
export function toldPorts(addresses: readonly string[]): readonly number[] {
  const places = addresses.flatMap((address) => parsePlace(address) ?? []);
  const [first] = places;
  if (first === undefined) return [];
  return places.filter(({ host }) => sameHost(host, first.host)).map(({ port }) => port);
}

function samePlace(a: Place, b: Place): boolean {
  return sameHost(a.host, b.host) && a.port === b.port;
}

function sameHost(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/** Each machine means itself by it. */
export function isLoopback({ host }: Place): boolean {
  return /^(localhost(\..*)?|127\..*|0\.0\.0\.0|0*:(0*:)*0*1?|::ffff:127\..*)$/i.test(host);
}

function targetVariables(target: UncleanLeader): Readonly<Record<string, string>> {
  const [address = ''] = target.addresses;
  const place = parsePlace(address);
  return {
    INCUMBENT_TARGET_ID: target.id,
    INCUMBENT_TARGET_TOKEN: target.token.toString(),
    INCUMBENT_TARGET_ADDRESS: address,
    INCUMBENT_TARGET_ADDRESSES: target.addresses.join(' '),
    INCUMBENT_TARGET_HOST: place?.host ?? '',
    INCUMBENT_TARGET_PORT: place === undefined ? '' : String(place.port),
  };
}

/**
 * Tries the methods in order until one succeeds.
 * @param attempt rejects when the method has failed
 * @returns the method that succeeded
 * @throws Error with the reason of each; `signal.reason`
 */
export async function fenceUntilOne(
  methods: readonly FenceMethod[],
  attempt: (method: FenceMethod) => Promise<void>,
  signal: AbortSignal,
): Promise<FenceMethod> {
  const failures: string[] = [];
  for (const method of methods) {
    signal.throwIfAborted();
    try {
      await attempt(method);
      return method;
    } catch (error) {
      signal.throwIfAborted();
      failures.push(`${method.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new Error(failures.join('; '));
}
