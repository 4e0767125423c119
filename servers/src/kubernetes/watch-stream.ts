import type { ServerResponse } from 'node:http';
import type { LeaseEvent, LeaseRegistry } from './lease-registry.ts';
import { StatusError } from './status.ts';

export interface WatchPlan {
  readonly namespace: string;
  /** Undefined: all of the namespace. */
  readonly name: string | undefined;
  /** Empty or `0`: what is there first, then what happens. */
  readonly resourceVersion: string;
  readonly timeoutSeconds: number;
  readonly bookmarkEveryMs: number | undefined;
}

/** One watch: lines of JSON until somebody has enough of it. */
export class WatchStream {
  readonly #registry: LeaseRegistry;
  readonly #response: ServerResponse;
  readonly #plan: WatchPlan;
  readonly #timers: NodeJS.Timeout[] = [];
  #unfollow: () => void = () => {};

  constructor(registry: LeaseRegistry, response: ServerResponse, plan: WatchPlan) {
    this.#registry = registry;
    this.#response = response;
    this.#plan = plan;
  }

  start(): void {
    const { namespace, name, resourceVersion, timeoutSeconds, bookmarkEveryMs } = this.#plan;
    this.#response.writeHead(200, { 'content-type': 'application/json' });
    this.#response.flushHeaders();
    this.#response.on('close', () => this.#stop());
    const showsPresent = resourceVersion === '' || resourceVersion === '0';
    const present = showsPresent ? this.#registry.list(namespace, name) : [];
    try {
      const { missed, end } = this.#registry.follow(
        showsPresent ? this.#registry.revision : Number(resourceVersion),
        (event) => this.#tell(event),
      );
      this.#unfollow = end;
      for (const lease of present) this.#write({ type: 'ADDED', object: lease });
      for (const event of missed) this.#tell(event);
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      this.end(error);
      return;
    }
    this.#timers.push(setTimeout(() => this.end(), timeoutSeconds * 1_000));
    if (bookmarkEveryMs === undefined) return;
    this.#timers.push(setInterval(() => this.#bookmark(), bookmarkEveryMs));
  }

  /** @param status the last word, as an event of type ERROR */
  end(status?: StatusError): void {
    this.#stop();
    if (status !== undefined) this.#write({ type: 'ERROR', object: status });
    this.#response.end();
  }

  #stop(): void {
    this.#unfollow();
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #tell({ type, lease }: LeaseEvent): void {
    const { namespace, name } = lease.metadata;
    if (namespace !== this.#plan.namespace) return;
    if (this.#plan.name !== undefined && name !== this.#plan.name) return;
    this.#write({ type, object: lease });
  }

  #bookmark(): void {
    const metadata = { resourceVersion: String(this.#registry.revision) };
    const object = { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1', metadata, spec: {} };
    this.#write({ type: 'BOOKMARK', object });
  }

  #write(event: object): void {
    this.#response.write(`${JSON.stringify(event)}\n`);
  }
}
