import { join } from 'node:path';
import process from 'node:process';
import type { Played } from '@incumbent/servers/interop';
import {
  judge,
  ourCommand,
  overlapReport,
  Play,
  peerCommand,
  planChanges,
  strikesOf,
  takeoverTable,
} from '@incumbent/servers/interop';
import { it } from 'vitest';
import { FencedLog } from '../../../cli/src/trial/index.ts';
import { requirePeer, useStage } from './support/stage.ts';

/** The shortest that their estimate of the end of a session can do with: it counts whole seconds. */
const sessionMs = 2_000;
const changes = Number(process.env['INCUMBENT_NODE_CHANGES'] ?? 20);
const stage = useStage({ peers: ['node'] });

it('M1–M4: changes of the leader with a C program that races for one node', {
  timeout: 60_000 + changes * 15_000,
}, async (context) => {
  requirePeer(context, 'node');
  const { server, directory } = stage();
  const log = new FencedLog(join(directory, 'node.log'));
  await using play = new Play({
    ours: ourCommand('node'),
    theirs: peerCommand('node', directory),
    server,
    path: '/master/test',
    sessionMs,
    log,
  });
  await play.gather('theirs first');
  const played: Played[] = [];
  for (const change of planChanges(changes, 4, strikesOf('node'))) {
    played.push(await play.change(change));
  }
  log.close();

  const { violations, overlaps } = judge(log.judge, played);
  const { expect } = context;
  expect(violations).toEqual([]);
  expect(
    overlaps.filter(({ later }) => later.startsWith('ours')),
    'ours lead while theirs do',
  ).toEqual([]);
  expect(play.complaints).toBe('');
  expect(log.judge.terms.length).toBeGreaterThan(changes);
  // Overlaps among theirs are reported, not judged: nobody waits there for anybody's belief.
  console.log(`${takeoverTable(played)}\n${overlapReport(played, overlaps)}`);
});
