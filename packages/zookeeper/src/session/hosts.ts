import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { HostAndPort } from '../connection-string.ts';
import type { Address } from '../net/connection.ts';

/**
 * The addresses to connect to. Names are resolved again for each round, and all addresses are
 * shuffled.
 */
export class Hosts {
  readonly #hosts: readonly HostAndPort[];
  readonly #random: () => number;
  /** The addresses of each name when it last could be resolved. */
  readonly #known: Map<string, readonly string[]> = new Map();

  constructor(hosts: readonly HostAndPort[], random: () => number) {
    this.#hosts = hosts;
    this.#random = random;
  }

  /** The number of hosts in the connection string. A round has at least so many attempts. */
  get count(): number {
    return this.#hosts.length;
  }

  /** The addresses, if no name has to be resolved. */
  literal(): Address[] | undefined {
    if (this.#hosts.some(({ host }) => isIP(host) === 0)) return undefined;
    return this.#shuffled(this.#hosts.map(({ host, port }) => ({ host, port, name: host })));
  }

  /**
   * The addresses of all hosts, in random order. A name that cannot be resolved in time keeps its
   * earlier addresses. Never rejects.
   * @param bound aborts when there is no more time
   * @param onError called for names that could not be resolved
   */
  async resolve(bound: AbortSignal, onError: (error: Error) => void): Promise<Address[]> {
    let onAbort = () => {};
    const aborted = new Promise<undefined>((resolve) => {
      onAbort = () => resolve(undefined);
    });
    if (bound.aborted) onAbort();
    else bound.addEventListener('abort', onAbort);
    const all = await Promise.all(
      this.#hosts.map(async ({ host, port }) => {
        if (isIP(host) !== 0) return [{ host, port, name: host }];
        try {
          const found = await Promise.race([lookup(host, { all: true }), aborted]);
          if (found === undefined) onError(new Error(`${host} could not be resolved in time`));
          else if (found.length > 0) {
            this.#known.set(
              host,
              found.map(({ address }) => address),
            );
          }
        } catch (error) {
          onError(error as Error);
        }
        return (this.#known.get(host) ?? []).map((address) => ({
          host: address,
          port,
          name: host,
        }));
      }),
    );
    bound.removeEventListener('abort', onAbort);
    const distinct = new Map(
      all.flat().map((address) => [`${address.host} ${address.port}`, address]),
    );
    return this.#shuffled([...distinct.values()]);
  }

  #shuffled(addresses: Address[]): Address[] {
    for (let i = addresses.length - 1; i > 0; i -= 1) {
      const j = Math.floor(this.#random() * (i + 1));
      [addresses[i], addresses[j]] = [addresses[j] as Address, addresses[i] as Address];
    }
    return addresses;
  }
}
