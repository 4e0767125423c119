/** One election as channels follow it: its leader's publications, in gRPC's words. */
import type { CandidateInfo } from '../../base/candidate.ts';
import { describeValue } from '../../base/candidate.ts';
import { parametersBase64Key, parametersKey } from '../../base/connection-parameters.ts';
import { publish } from '../../core/diagnostics.ts';
import type { Election } from '../../core/election.ts';
import type { Sight } from '../index.ts';
import { LeaderWatch } from '../index.ts';
import { parseEndpoint } from './addresses.ts';
import type { Endpoint } from './module.ts';
import type { ServiceConfig } from './service-config.ts';
import { parseServiceConfig } from './service-config.ts';

export interface SourceOptions {
  /** See `LeaderResolverOptions`. */
  readonly addressesOf?: ((leader: CandidateInfo) => readonly string[]) | undefined;
  readonly whileUnknown?: 'keep' | 'refuse' | undefined;
  readonly onTrouble?: ((what: string, error: unknown) => void) | undefined;
}

/** Tells a channel what to do. */
export interface Resolution {
  /** Without endpoints calls fail, or wait if they wait for ready. */
  readonly endpoints: readonly Endpoint[];
  /** Identifies the leader and its term. */
  readonly term: string;
  /** Why there are no endpoints. */
  readonly nobody: string;
  /** For error messages of calls that cannot reach the leader. */
  readonly note: string;
  /** The config of the leader, or of the last one while there is none. Undefined: it gave none. */
  readonly config: ServiceConfig | undefined;
}

export class LeaderSource {
  readonly election: Election;
  readonly #options: SourceOptions;
  readonly #watch: LeaderWatch;
  readonly #followers = new Map<object, (resolution: Resolution) => void>();
  #unsubscribe: (() => void) | undefined;
  #last: { readonly sight: Sight; readonly resolution: Resolution } | undefined;
  /** The leader's parameters: parsed, and complained about, once. */
  #parsed: { readonly text: string | undefined; readonly config: ServiceConfig | undefined } = {
    text: undefined,
    config: undefined,
  };
  /** The addresses that were complained about. */
  #complainedOf = '';
  #isClosed = false;

  constructor(election: Election, options: SourceOptions) {
    this.election = election;
    this.#options = options;
    this.#watch = LeaderWatch.of(election);
  }

  /** Undefined until something is known. */
  get resolution(): Resolution | undefined {
    if (this.#isClosed) return this.#closed();
    const { sight } = this.#watch;
    return sight === undefined ? undefined : this.#resolve(sight);
  }

  /**
   * @param listener called with every change, never from within this call, and with the end last
   */
  follow(follower: object, listener: (resolution: Resolution) => void): void {
    if (this.#isClosed) return;
    this.#followers.set(follower, listener);
    this.#unsubscribe ??= this.#watch.subscribe((sight) => this.#tell(this.#resolve(sight)));
  }

  leave(follower: object): void {
    this.#followers.delete(follower);
    if (this.#followers.size > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#last = undefined;
  }

  lookAgain(): void {
    if (!this.#isClosed) this.#watch.lookAgain();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#tell(this.#closed());
    for (const follower of [...this.#followers.keys()]) this.leave(follower);
  }

  #tell(resolution: Resolution): void {
    for (const listener of [...this.#followers.values()]) listener(resolution);
  }

  #closed(): Resolution {
    const nobody = `the resolver of election "${this.election.name}" was closed`;
    return { endpoints: [], term: '', nobody, note: nobody, config: this.#parsed.config };
  }

  #resolve(sight: Sight): Resolution {
    if (this.#last?.sight === sight) return this.#last.resolution;
    const resolution = this.#resolveAnew(sight);
    this.#last = { sight, resolution };
    return resolution;
  }

  #resolveAnew(sight: Sight): Resolution {
    const { name } = this.election;
    const { leader, ready, error } = sight;
    const config = leader === undefined ? undefined : this.#configOf(leader.info);
    const follow = ready && (sight.state === 'led' || this.#options.whileUnknown !== 'refuse');
    if (!follow || leader === undefined) {
      const nobody = describeAbsence(name, sight);
      return { endpoints: [], term: '', nobody, note: nobody, config };
    }
    const { info, token } = leader;
    const who = `"${info.id}"${token === undefined ? '' : `, term ${token}`}`;
    const term = `${info.incarnation} ${token ?? ''}`;
    const stale = error === undefined ? '' : `, when the store was last read (${error.message})`;
    const endpoints = this.#endpointsOf(info);
    const nobody = `${who} leads election "${name}" and has published no address for gRPC`;
    return { endpoints, term, nobody, note: `${who} leads election "${name}"${stale}`, config };
  }

  #configOf({ id, metadata }: CandidateInfo): ServiceConfig | undefined {
    // Bytes that are no text are no JSON either, and are complained about.
    const text = metadata[parametersKey] ?? metadata[parametersBase64Key];
    if (text === this.#parsed.text) return this.#parsed.config;
    let config: ServiceConfig | undefined;
    if (text !== undefined && text !== '') {
      try {
        if (metadata[parametersKey] === undefined) throw new Error('they are not UTF-8');
        config = parseServiceConfig(text);
      } catch (error) {
        const what = `reading the connection parameters of leader "${id}" as a service config`;
        this.#trouble(what, error);
      }
    }
    this.#parsed = { text, config };
    return config;
  }

  /** A leader is one process, so it is one endpoint. */
  #endpointsOf(leader: CandidateInfo): readonly Endpoint[] {
    let published: readonly string[] = leader.addresses;
    const { addressesOf } = this.#options;
    try {
      if (addressesOf !== undefined) published = addressesOf(leader);
      if (!Array.isArray(published)) {
        throw new Error(`addressesOf returned ${describeValue(published)} instead of a list`);
      }
    } catch (error) {
      this.#trouble(`choosing among the addresses of leader "${leader.id}"`, error);
      return [];
    }
    const bad: string[] = [];
    const addresses = published.flatMap((text) => {
      const address = typeof text === 'string' ? parseEndpoint(text) : undefined;
      if (address === undefined) bad.push(describeValue(text));
      return address === undefined ? [] : [address];
    });
    const complaint = `${leader.incarnation} ${bad.join(' ')}`;
    if (bad.length > 0 && complaint !== this.#complainedOf) {
      this.#complainedOf = complaint;
      const why = `${bad.join(', ')}: gRPC takes "host:port"; choose with addressesOf`;
      this.#trouble(`reading the addresses of leader "${leader.id}"`, new Error(why));
    }
    return addresses.length === 0 ? [] : [{ addresses }];
  }

  #trouble(what: string, error: unknown): void {
    publish('incumbent:trouble', { election: this.election.name, candidate: '' }, { what, error });
    try {
      this.#options.onTrouble?.(what, error);
    } catch {
      // The listener was told. Its failure is not ours.
    }
  }
}

function describeAbsence(name: string, { state, error, leader }: Sight): string {
  switch (state) {
    case 'ended':
      return `election "${name}" has ended`;
    case 'closed':
      return `the handle on election "${name}" was closed`;
    case 'unknown': {
      const last = leader === undefined ? '' : `; the last leader seen is "${leader.info.id}"`;
      const why = error === undefined ? '' : ` (${error.message})`;
      return `nobody knows who leads election "${name}": the store cannot be read${why}${last}`;
    }
    case 'led':
      return `leader "${leader?.info.id}" of election "${name}" is not ready yet`;
    case 'vacant':
      return `nobody leads election "${name}" at the moment`;
  }
}
