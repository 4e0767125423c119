import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FencedLog } from '@incumbent/cli/trial';
import type { Arrival, Ground, Played } from '@incumbent/servers/interop';
import {
  arrivals,
  judge,
  ourCommand,
  overlapReport,
  Play,
  peerCommand,
  planChanges,
  startGround,
} from '@incumbent/servers/interop';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { missing } from './support/etcd.ts';

/** `npm run chaos:interop -- --layout etcdctl` has more of them. */
describe.skipIf(missing !== undefined)('an election held together with etcdctl elect', () => {
  let ground: Ground | undefined;
  let directory = '';
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'incumbent-interop-'));
    ground = await startGround('etcdctl');
  });
  afterAll(async () => {
    await ground?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  it.concurrent.for(Object.keys(arrivals) as Arrival[])(
    'ten changes of the leader, %s, and nobody leads while ours do',
    async (arrival, { expect }) => {
      const name = arrival.replace(' ', '-');
      const log = new FencedLog(join(directory, `${name}.log`));
      await using play = new Play({
        ours: ourCommand('etcdctl'),
        theirs: peerCommand('etcdctl', directory),
        ...(ground as Ground).venue(`/changes/${name}`),
        sessionMs: 2_000,
        log,
      });
      await play.gather(arrival);
      const played: Played[] = [];
      for (const change of planChanges(10, 4)) played.push(await play.change(change));
      log.close();
      const verdict = judge(log.judge, played);
      expect(verdict.violations).toEqual([]);
      expect(play.complaints).toBe('');
      expect(log.judge.terms.length).toBeGreaterThan(10);
      // Overlaps that their own rules allow are reported, not judged.
      console.log(`${arrival}\n${overlapReport(played, verdict.overlaps)}`);
    },
  );
});
