import type { TestEnsemble, TestServer } from '@incumbent/zookeeper-testing';
import { startEnsemble, startServer } from '@incumbent/zookeeper-testing';
import { monotonicMs, pause } from '../harness/time.ts';
import { lossless } from '../harness/zookeeper-properties.ts';
import { timing } from './bound.ts';
import type { FaultOf, Strike } from './plan.ts';

/** ZooKeeper: one server, or three. All sets share it. */
export class Servers {
  readonly #servers: readonly TestServer[];
  readonly #close: () => Promise<void>;
  readonly #ready: () => Promise<void>;
  #lastUpMs: number = monotonicMs();
  /** Strikes come one after the other, whichever set has them. */
  #last: Promise<void> = Promise.resolve();

  private constructor(
    servers: readonly TestServer[],
    ready: () => Promise<void>,
    close: () => Promise<void>,
  ) {
    this.#servers = servers;
    this.#ready = ready;
    this.#close = close;
  }

  static async start(asEnsemble: boolean): Promise<Servers> {
    const options = { tickTimeMs: timing.tickMs, minSessionTimeoutMs: 400 };
    if (asEnsemble) {
      const ensemble: TestEnsemble = await startEnsemble(3, {
        ...options,
        systemProperties: lossless,
      });
      const { members } = ensemble;
      return new Servers(
        members,
        () => ensemble.waitForQuorum({ atLeast: members.length, timeoutMs: 90_000 }),
        () => ensemble.close(),
      );
    }
    const server = await startServer(options);
    return new Servers(
      [server],
      async () => {},
      () => server.close(),
    );
  }

  get ports(): readonly number[] {
    return this.#servers.map(({ port }) => port);
  }

  /** Past all proxies. */
  get connectionString(): string {
    return `zk://${this.ports.map((port) => `127.0.0.1:${port}`).join(',')}`;
  }

  /** When it served again after the last strike; infinite while it is struck. */
  get lastUpMs(): number {
    return this.#lastUpMs;
  }

  /** Resolves when all of them serve again. */
  strike({ fault, forMs, choice }: Strike<FaultOf<'server'>>): Promise<void> {
    const done = this.#last.then(async () => {
      const server = this.#servers[Math.floor(choice * this.#servers.length)] as TestServer;
      this.#lastUpMs = Number.POSITIVE_INFINITY;
      if (fault === 'restart') {
        await server.kill();
        await pause(forMs);
        await server.restart();
      } else {
        await server.freeze();
        await pause(forMs);
        server.thaw();
      }
      await this.#ready();
      this.#lastUpMs = monotonicMs();
    });
    this.#last = done.catch(() => {});
    return done;
  }

  close(): Promise<void> {
    return this.#close();
  }
}
