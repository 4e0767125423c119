/** The elections that the channels of a process can follow. */

import type { CandidateInfo } from '../../base/candidate.ts';
import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import type { Election } from '../../core/election.ts';
import { registerBalancer } from './balancer.ts';
import { LeaderSource } from './leader-source.ts';
import type {
  ChannelOptions,
  Grpc,
  GrpcModule,
  Resolver,
  ResolverListener,
  Target,
} from './module.ts';
import { resolverModule } from './module.ts';
import { authorityOf, LeaderResolver, nameIn } from './resolver.ts';

/** The options of `registerLeaderResolver`. */
export interface LeaderResolverOptions {
  /**
   * The elections whose leaders channels can follow: one, or several by the names in their targets.
   * The handles stay the caller's: closing the resolver does not close them.
   */
  readonly elections: Election | Readonly<Record<string, Election>>;
  /**
   * Where gRPC reaches a leader, as `host:port`, `[v6]:port` or `unix:/path`. Default: all of
   * `leader.addresses` that have this form. Others are reported and left out.
   */
  readonly addressesOf?: (leader: CandidateInfo) => readonly string[];
  /**
   * Applies while the store cannot be read. `keep` (default): calls go on to the last known leader,
   * for as long as that lasts. If that leader has lost its term meanwhile, it refuses them if it
   * has `requireLeadership`. `refuse`: calls fail or wait, even though the leader may still lead.
   */
  readonly whileUnknown?: 'keep' | 'refuse';
  /**
   * Called when a leader has published something that gRPC cannot use. The channels go on without
   * it. Also published on the diagnostics channel `incumbent:trouble`.
   */
  readonly onTrouble?: (what: string, error: unknown) => void;
}

/** The channels' hold on the elections. */
export interface LeaderResolverHandle {
  /**
   * Ends following: the elections are not observed for channels any more. Calls on existing
   * channels then fail with `UNAVAILABLE`, so close those too. A second call does nothing.
   */
  close(): void;
  [Symbol.dispose](): void;
}

/** `leaderelection` is the scheme that users of vimeo/leaderelection know. */
const schemes = ['incumbent', 'leaderelection'] as const;

/**
 * gRPC cannot take a scheme back. So one table for each copy of it serves all registrations. The
 * key is its registry: `import * as` and `require` of one copy give two objects.
 */
const tables = new WeakMap<object, Map<string, LeaderSource>>();

/**
 * Makes channels of this `@grpc/grpc-js` (1.13 or 1.14) follow the leader of an election:
 *
 * ```ts
 * registerLeaderResolver(grpc, { elections: election });
 * const client = new LedgerClient('incumbent:///billing', grpc.credentials.createInsecure());
 * ```
 *
 * The target is `incumbent:///` and the name, or `leaderelection:///` and the name. Percent-encode
 * the name where it has signs that a URL does not take. Where only one election is registered, a
 * `leaderelection` target may have any name, and an `incumbent` one may have none.
 *
 * A channel to a name that is not registered throws when it is made. A channel that is made before
 * the first call of this function asks DNS for the target, for as long as it lives.
 *
 * While no candidate leads, calls fail with `UNAVAILABLE`. Calls that wait for ready wait as long
 * as their deadline allows, and without one for ever. A call waits for ready by its metadata, or by
 * `waitForReady` of the service config. The leader's `metadata.connectionParameters` is the
 * channel's service config. Nothing here keeps the process alive, but waiting calls do.
 *
 * Not promised: that the called server still leads. Give it `requireLeadership`.
 * @throws InvalidOptionError
 */
export function registerLeaderResolver(
  module: GrpcModule,
  options: LeaderResolverOptions,
): LeaderResolverHandle {
  const grpc = resolverModule(module);
  const elections = checkOptions(options);
  const table = tableOf(grpc);
  for (const name of elections.keys()) {
    if (table.has(name)) {
      throw new InvalidOptionError(
        `a resolver for election "${name}" is registered already: close that one first, or give ` +
          'this one another name (elections: { name: election })',
      );
    }
  }
  const sources = new Map<string, LeaderSource>();
  for (const [name, election] of elections) {
    const source = new LeaderSource(election, options);
    sources.set(name, source);
    table.set(name, source);
  }
  const close = () => {
    for (const [name, source] of sources) {
      if (table.get(name) === source) table.delete(name);
      source.close();
    }
  };
  return { close, [Symbol.dispose]: close };
}

function tableOf(grpc: Grpc): Map<string, LeaderSource> {
  const { registerResolver } = grpc.experimental;
  let table = tables.get(registerResolver);
  if (table === undefined) {
    table = new Map();
    tables.set(registerResolver, table);
    registerBalancer(grpc);
    for (const scheme of schemes) registerResolver(scheme, resolverClass(grpc, table));
  }
  return table;
}

type ResolverClass = Parameters<Grpc['experimental']['registerResolver']>[1];

function resolverClass(grpc: Grpc, table: ReadonlyMap<string, LeaderSource>): ResolverClass {
  return class extends LeaderResolver implements Resolver {
    constructor(target: Target, listener: ResolverListener, options: ChannelOptions) {
      super(grpc, find(table, target), listener, options);
    }

    /**
     * The host that servers see, and that certificates are checked against. Never throws: it is
     * called again in the background, where a missing name could not be reported any more.
     */
    static getDefaultAuthority(target: Target): string {
      const [first = ''] = table.keys();
      return authorityOf(nameIn(target) || first);
    }
  };
}

/** @throws InvalidOptionError */
function find(table: ReadonlyMap<string, LeaderSource>, target: Target): LeaderSource {
  const name = nameIn(target);
  const [only] = table.size === 1 ? table.values() : [];
  const mayMeanAny = name === '' || target.scheme === 'leaderelection';
  const source = table.get(name) ?? (mayMeanAny ? only : undefined);
  if (source !== undefined) return source;
  const known = [...table.keys()].map((each) => `"${each}"`).join(', ');
  throw new InvalidOptionError(
    `${target.scheme}:///${name} names no election that a resolver is registered for; ` +
      (known === '' ? 'none is registered' : `registered: ${known}`),
  );
}

const optionNames: Record<keyof LeaderResolverOptions, true> = {
  elections: true,
  addressesOf: true,
  whileUnknown: true,
  onTrouble: true,
};

function checkOptions(options: LeaderResolverOptions): ReadonlyMap<string, Election> {
  checkNames('registerLeaderResolver', options, optionNames);
  for (const name of ['addressesOf', 'onTrouble'] as const) {
    if (options[name] !== undefined && typeof options[name] !== 'function') {
      throw new InvalidOptionError(
        `${name} must be a function, not ${describeValue(options[name])}`,
      );
    }
  }
  const { whileUnknown } = options;
  if (whileUnknown !== undefined && whileUnknown !== 'keep' && whileUnknown !== 'refuse') {
    throw new InvalidOptionError(
      `whileUnknown is "keep" or "refuse", not ${describeValue(whileUnknown)}`,
    );
  }
  return electionsOf(options.elections);
}

function electionsOf(given: LeaderResolverOptions['elections']): ReadonlyMap<string, Election> {
  if (isElection(given)) return new Map([[given.name, given]]);
  if (typeof given !== 'object' || given === null || Object.keys(given).length === 0) {
    throw new InvalidOptionError(
      `elections is an election, or { name: election }, not ${describeValue(given)}`,
    );
  }
  for (const [name, election] of Object.entries(given)) {
    if (name === '' || !isElection(election)) {
      throw new InvalidOptionError(
        `elections["${name}"] must be what createElection returns, not ${describeValue(election)}`,
      );
    }
  }
  return new Map(Object.entries(given));
}

function isElection(value: unknown): value is Election {
  const election = value as Partial<Election> | null | undefined;
  return typeof election?.observe === 'function' && typeof election.name === 'string';
}
