/** A name resolver for `@grpc/grpc-js` that answers with the leader of an election. */
import { InvalidOptionError } from '../../base/errors.ts';
import { balancingBy } from './balancer.ts';
import type { LeaderSource, Resolution } from './leader-source.ts';
import { selectMethodConfig } from './method-configs.ts';
import type { ChannelOptions, Grpc, Resolver, ResolverListener, Target } from './module.ts';
import type { ServiceConfig } from './service-config.ts';
import { parseServiceConfig } from './service-config.ts';

const noConfig: ServiceConfig = { loadBalancingConfig: [], methodConfig: [] };

/** The resolver of one channel. Observing begins when it is first asked. */
export class LeaderResolver implements Resolver {
  readonly #grpc: Grpc;
  readonly #source: LeaderSource;
  readonly #listener: ResolverListener;
  /** The user's config for the channel. It counts as long as the leader publishes none. */
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
   * answered as soon as something is known. After that every change is reported. A later question
   * makes the store be read once more, and is answered only by news. An answer at once, with known
   * facts, would make gRPC ask again, and so on for ever.
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

  /** The channel is closed or idle. An idle one asks again later, and wants a whole answer then. */
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

/** The name in a target such as `incumbent:///billing`. Empty when there is none. */
export function nameIn(target: Target): string {
  const path = target.path.replace(/^\/+/, '');
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** A name as a host for the URL that gRPC makes of it: the name itself if it is a host. */
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
