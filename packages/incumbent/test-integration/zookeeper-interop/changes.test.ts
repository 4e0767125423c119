import { join } from 'node:path';
import type { Arrival, Layout, Played } from '@incumbent/servers/interop';
import {
  judge,
  ourCommand,
  overlapReport,
  Play,
  peerCommand,
  planChanges,
} from '@incumbent/servers/interop';
import { it } from 'vitest';
import { FencedLog } from '../../../cli/src/trial/index.ts';
import { requirePeer, useStage } from './support/stage.ts';

const sessionMs = 2_000;
const stage = useStage({ peers: ['curator-latch'] });

const cases: readonly (readonly [Layout, Arrival])[] = [
  ['kazoo', 'ours first'],
  ['curator-latch', 'theirs first'],
  ['curator-selector', 'ours first'],
];

it.concurrent.for(cases)(
  'ten changes of the leader with %s, %s',
  async ([layout, arrival], context) => {
    requirePeer(context, layout);
    const { server, directory } = stage();
    const log = new FencedLog(join(directory, `${layout}.log`));
    await using play = new Play({
      ours: ourCommand(layout),
      theirs: peerCommand(layout, directory),
      server,
      path: `/changes/${layout}`,
      sessionMs,
      log,
    });
    await play.gather(arrival);
    const played: Played[] = [];
    for (const change of planChanges(10, 4)) played.push(await play.change(change));
    log.close();

    const verdict = judge(log.judge, played);
    const { expect } = context;
    expect(verdict.violations).toEqual([]);
    expect(play.complaints).toBe('');
    expect(log.judge.terms.length).toBeGreaterThan(10);
    // Overlaps that another library's own rules allow are reported, not judged.
    console.log(`${layout}\n${overlapReport(played, verdict.overlaps)}`);
  },
);
