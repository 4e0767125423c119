/** A name resolver for `@grpc/grpc-js` that answers with whoever leads an election. */
import { InvalidOptionError } from '../../base/errors.ts';
import { balancingBy } from './balancer.ts';
import type { LeaderSource, Resolution } from './leader-source.ts';
import { selectMethodConfig } from './method-configs.ts';
import type { ChannelOptions, Grpc, Resolver, ResolverListener, Target } from './module.ts';
import type { ServiceConfig } from './service-config.ts';
import { parseServiceConfig } from './service-config.ts';

const noConfig: ServiceConfig = { loadBalancingConfig: [], methodConfig: [] };

/** The resolver of one channel. Not before it is asked for the first time does anybody observe. */
export class LeaderResolver implements Resolver {
  readonly #grpc: Grpc;
  readonly #source: LeaderSource;
  readonly #listener: ResolverListener;
  /** What the user configured for the channel: counts as long as the leader publishes nothing. */
  readonly #ownConfig: ServiceConfig;
  readonly #takesConfig: boolean;
  #isFollowing = false;
  #first: ReturnType<typeof setImmediate> | undefined;
  #answered = '';

  constructor(
    grpc: Grpc,
    source: LeaderSource,
    listener: ResolverListener,
    options: ChannelOptions,
  ) {
    this.#grpc = grpc;
    this.#source = source;
    this.#listener = listener;
    this.#takesConfig = options['grpc.service_config_disable_resolution'] !== 1;
    const text = options['grpc.service_config'];
    this.#ownConfig = typeof text === 'string' ? ownConfig(text) : noConfig;
  }

  /**
   * gRPC asks at the beginning, and whenever a connection is in trouble. The first question is
   * answered as soon as something is known, then every change is told. A question in between makes
   * the store be read once more, and is answered only if that tells something new: to answer at once
   * with what is known would make gRPC ask again, and so on for ever.
   */
  updateResolution(): void {
    if (this.#isFollowing) {
      this.#source.lookAgain();
      return;
    }
    this.#isFollowing = true;
    this.#source.follow(this, (resolution) => this.#answer(resolution));
    // gRPC forbids an answer from within this call.
    this.#first = setImmediate(() => {
      const { resolution } = this.#source;
      if (resolution !== undefined) this.#answer(resolution);
    });
  }

  /** The channel is closed or idle; an idle one asks again later, and wants a whole answer then. */
  destroy(): void {
    clearImmediate(this.#first);
    this.#source.leave(this);
    this.#isFollowing = false;
    this.#answered = '';
  }

  #answer(resolution: Resolution): void {
    const { endpoints, term, nobody, note } = resolution;
    const chosen = (this.#takesConfig ? resolution.config : undefined) ?? this.#ownConfig;
    const config = {
      ...chosen,
      loadBalancingConfig: balancingBy({ child: chosen.loadBalancingConfig, term, nobody }),
    };
    const answer = JSON.stringify([endpoints, config, note]);
    if (answer === this.#answered) return;
    this.#answered = answer;
    const selector = selectMethodConfig(config.methodConfig);
    const { CHANNEL_ARGS_CONFIG_SELECTOR_KEY: key, statusOrFromValue } = this.#grpc.experimental;
    if (statusOrFromValue === undefined) {
      this.#listener.onSuccessfulResolution(endpoints, config, null, selector, {});
    } else {
      const attributes = key === undefined ? {} : { [key]: selector };
      this.#listener(statusOrFromValue(endpoints), attributes, statusOrFromValue(config), note);
    }
  }
}

function ownConfig(text: string): ServiceConfig {
  try {
    return parseServiceConfig(text);
  } catch (error) {
    throw new InvalidOptionError(
      `the channel option "grpc.service_config" cannot be used: ${(error as Error).message}`,
    );
  }
}

/** The name in a target such as `incumbent:///billing`; empty when there is none. */
export function nameIn(target: Target): string {
  const path = target.path.replace(/^\/+/, '');
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** A name as a host that a URL can have, which gRPC makes one of: the name itself if it is one. */
export function authorityOf(name: string): string {
  const letters = name.replace(/[^\w.:-]/g, '-');
  // A host that ends in a number counts as an IPv4 address.
  const hosts = [letters, letters.replace(/[.:]/g, '-'), `${letters.replace(/[.:]/g, '-')}-`];
  return hosts.find((host) => /^[\w.-]+(:\d+)?$/.test(host) && isHost(host)) ?? 'incumbent';
}

function isHost(host: string): boolean {
  try {
    return new URL(`http://${host}`).host !== '';
  } catch {
    return false;
  }
}
