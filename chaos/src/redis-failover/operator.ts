import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { monotonicMs } from '../harness/time.ts';
import type { Arena } from './arena.ts';
import type { RedisNode } from './nodes.ts';

const run = promisify(execFile);
const package_ = createRequire(import.meta.url).resolve('@incumbent/cli/package.json');
const program = join(dirname(package_), 'dist/redis-failover-command/bin.js');

/** Managers may still take a node back by themselves. */
const asideForMs = 2_000;
/** They wait for 10 s for nodes that may have more. */
const withoutPrimaryForMs = 14_000;

/**
 * Does what managers leave to people. A node that is set aside copies the primary. Where the
 * managers promote nobody, the node with most data is kept: once all of them run, nobody could know
 * more.
 */
export class Operator {
  readonly #arena: Arena;
  readonly #fromMs: number;
  /** Since when it is seen so. */
  readonly #asideSinceMs = new Map<RedisNode, number>();
  #keptMs: number;

  /** @param fromMs when everything was healed */
  constructor(arena: Arena, fromMs: number) {
    this.#arena = arena;
    this.#fromMs = fromMs;
    this.#keptMs = fromMs;
  }

  /** Looks, and does one thing at most. */
  async decide(): Promise<void> {
    const { nodes, records } = this.#arena;
    const nowMs = monotonicMs();
    const hasPrimary = records.last !== undefined && records.last.primary !== null;
    for (const node of nodes) {
      const isAside = await node.role().then(
        (role) => role.isAside,
        () => false,
      );
      if (!isAside) this.#asideSinceMs.delete(node);
      else if (!this.#asideSinceMs.has(node)) this.#asideSinceMs.set(node, nowMs);
    }
    const isWritten = this.#arena.clients.some(({ wroteMs }) => wroteMs > this.#fromMs);
    if (hasPrimary && isWritten) {
      const [aside] = [...this.#asideSinceMs].filter(([, sinceMs]) => nowMs - sinceMs > asideForMs);
      if (aside === undefined) return;
      this.#asideSinceMs.delete(aside[0]);
      return this.#say('discard', aside[0]);
    }
    if (isWritten || nowMs - this.#keptMs < withoutPrimaryForMs) return;
    this.#keptMs = nowMs;
    const best = await this.#best();
    if (best === undefined) return;
    if (best.address !== records.last?.primary) return this.#say('keep', best);
    // It has most, and takes no writes without a replica.
    for (const aside of this.#asideSinceMs.keys()) await this.#say('discard', aside);
  }

  async #best(): Promise<RedisNode | undefined> {
    const bits = await Promise.all(
      this.#arena.nodes.map(async (node) => [node, await this.#bitsOf(node)] as const),
    );
    return bits.toSorted(([, a], [, b]) => b - a)[0]?.[0];
  }

  async #bitsOf(node: RedisNode): Promise<number> {
    const counts = await Promise.all(
      this.#arena.clients.map(({ name }) =>
        node.command('BITCOUNT', `writes:${name}`).then(Number, () => 0),
      ),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async #say(action: 'discard' | 'keep', node: RedisNode): Promise<void> {
    const { note, root, servers } = this.#arena;
    note(`operator: ${action} ${node.address}`);
    const at = ['--zkservers', servers.connectionString.replace('zk://', ''), '--root', root];
    const words = [program, action, node.address, ...at, '--wait', '15s'];
    const said = await run(process.execPath, words).then(
      ({ stdout }) => stdout,
      (error: unknown) => String(error),
    );
    note(`operator: ${action} ${node.address}: ${said.trim()}`);
  }
}
