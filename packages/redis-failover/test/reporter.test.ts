// How a manager keeps its report in ZooKeeper, which is played.
import { NodeExistsError, NoNodeError } from '@incumbent/zookeeper';
import { expect, it, onTestFinished } from 'vitest';
import { pathsBelow } from '../src/layout.ts';
import { Reporter } from '../src/manager/reports.ts';
import type { ZooKeeperClient } from '../src/zookeeper-client.ts';
import { atRest, HandClock } from './support/hand-clock.ts';

const path = `${pathsBelow('/set').reports}/m`;
const report = (...available: string[]) => ({
  available: Object.fromEntries(available.map((node) => [node, 0.001])),
  unavailable: [],
});

class Played {
  session = { id: 1n };
  /** The report, and the session that it belongs to. */
  znode: { readonly text: string; readonly owner: bigint } | undefined;
  readonly troubles: string[] = [];
  readonly clock = new HandClock();
  /** The error of the next deletion. */
  refusal: Error | undefined;
  readonly reporter: Reporter;

  constructor() {
    const zk = {
      played: this,
      get session() {
        return this.played.session;
      },
      get: async () => {
        if (this.znode === undefined) throw new NoNodeError({ path });
        const { text, owner } = this.znode;
        return { text, stat: { version: 0, ephemeralOwner: owner } };
      },
      create: async (_: string, text: string) => {
        if (this.znode !== undefined) throw new NodeExistsError({ path });
        this.znode = { text, owner: this.session.id };
      },
      delete: async () => {
        this.znode = undefined;
        const refusal = this.refusal;
        this.refusal = undefined;
        if (refusal !== undefined) throw refusal;
      },
      async *follow() {},
    };
    this.reporter = new Reporter(
      zk as unknown as ZooKeeperClient,
      pathsBelow('/set'),
      'm',
      (error) => void this.troubles.push(error.message),
      this.clock,
    );
    onTestFinished(() => this.reporter.close());
  }

  async publish(...available: string[]): Promise<void> {
    this.reporter.publish(report(...available));
    await atRest();
  }
}

it('moves its report from a session that has ended to the new one', async () => {
  const played = new Played();
  await played.publish('a:1');
  expect(played.znode?.owner).toBe(1n);
  played.session = { id: 2n };
  await played.publish('b:1');
  expect(played.znode?.owner).toBe(2n);
  expect(JSON.parse(played.znode?.text ?? '')).toMatchObject({ available: { 'b:1': 0.001 } });
});

it('looks again where the report of the old session is gone already, and tells of no trouble', async () => {
  const played = new Played();
  await played.publish('a:1');
  played.session = { id: 2n };
  played.refusal = new NoNodeError({ path });
  await played.publish('b:1');
  expect(played.znode?.owner).toBe(2n);
  expect(played.troubles).toEqual([]);
});

it('tells what keeps it from taking the old report away, and tries again', async () => {
  const played = new Played();
  await played.publish('a:1');
  played.session = { id: 2n };
  played.refusal = new Error('not allowed');
  await played.publish('b:1');
  expect(played.troubles).toEqual(['not allowed']);
  await played.clock.pass(250);
  expect(played.znode?.owner).toBe(2n);
});
