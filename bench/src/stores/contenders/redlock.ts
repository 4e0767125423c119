/**
 * A leader as many programs build it on the package `redlock`. They try for a lock again and again,
 * with the package's own pauses, and extend it at a third of its life.
 */
import { createRequire } from 'node:module';
import { Redis } from 'ioredis';
import type { OpenContender } from './contender.ts';
import { probeName, probeText } from './contender.ts';

/** The part of the package that we use: it brings no types. */
interface Lock {
  readonly expiration: number;
  extend(ttlMs: number): Promise<Lock>;
  unlock(): Promise<void>;
}
type Redlock = new (
  clients: readonly Redis[],
  options: { readonly retryCount: number },
) => { lock(resource: string, ttlMs: number): Promise<Lock> };

const forEver = -1;

export const open: OpenContender = async ({ port }, leaseMs) => {
  const client = new Redis({ host: '127.0.0.1', port });
  client.on('error', () => {});
  const RedlockClass = createRequire(import.meta.url)('redlock') as Redlock;
  const redlock = new RedlockClass([client], { retryCount: forEver });
  return {
    async campaign(name) {
      const lock = await redlock.lock(name, leaseMs);
      const listeners: (() => void)[] = [];
      let isOver = false;
      const end = () => {
        if (isOver) return;
        isOver = true;
        clearInterval(timer);
        for (const listener of listeners) listener();
      };
      const timer = setInterval(() => {
        lock.extend(leaseMs).catch(end);
      }, leaseMs / 3);
      return {
        token: null,
        isLeading: () => !isOver && lock.expiration > Date.now(),
        async resign() {
          clearInterval(timer);
          await lock.unlock();
          end();
        },
        onEnd: (listener) => listeners.push(listener),
      };
    },
    probe: { read: () => client.get(probeName), write: () => client.set(probeName, probeText) },
  };
};
