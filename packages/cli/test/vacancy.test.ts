// `status`, `leader` and `watch` say why the seat is vacant, and until when.
import type { Snapshot } from 'incumbent';
import { createElection } from 'incumbent';
import { memory } from 'incumbent/memory';
import { expect, onTestFinished, test } from 'vitest';
import { asCandidatesSee } from '../src/output/vacancy.ts';
import { altered } from './support/altered.ts';
import { invoke, jsonLines, Running } from './support/invoke.ts';

const empty: Snapshot = {
  view: { state: 'vacant', sinceUnixMs: 0 },
  history: [],
  drains: [],
  request: undefined,
  leaseMs: undefined,
  unfenced: [],
  holderGone: false,
};

/** A store that was restarted so long ago, seen by a handle whose own lease is `leaseMs`. */
const restarted = (ago: number, leaseMs: number, nowUnixMs: number): Snapshot => ({
  ...empty,
  settling: {
    kind: 'settling',
    after: 'restart',
    sinceUnixMs: nowUnixMs - ago,
    untilUnixMs: nowUnixMs - ago + leaseMs,
  },
});

test('a store settles for the lease of the candidates, not for that of the command', () => {
  const nowUnixMs = 1_000_000;
  const seen = (ago: number, leaseMs?: number) =>
    asCandidatesSee(
      { ...restarted(ago, Math.max(120_000, leaseMs ?? 0), nowUnixMs), leaseMs },
      120_000,
      15_000,
      nowUnixMs,
    );
  expect(seen(4_000)).toMatchObject({
    candidateLeaseMs: 15_000,
    settling: { untilUnixMs: nowUnixMs + 11_000 },
  });
  expect(seen(15_000)).not.toHaveProperty('settling');
  // A leader on record is protected for its own lease.
  expect(seen(4_000, 60_000)).toMatchObject({
    candidateLeaseMs: 60_000,
    settling: { untilUnixMs: nowUnixMs + 56_000 },
  });
  expect(seen(4_000, 600_000).settling).toMatchObject({ untilUnixMs: nowUnixMs + 596_000 });
});

/** The default `--timeout` of commands makes them ask with this lease. */
const askedLeaseMs = 120_000;

const settles = () => altered({ inspect: async () => restarted(4_000, askedLeaseMs, Date.now()) });
const words =
  /the store was restarted, or the election is new there \(4(\.\d)?s ago\); a leader that it forgot may still believe for 1[01](\.\d)?s, at a lease of 15s/;

test('status and leader say that the store was restarted, and until when', async () => {
  const backend = settles();
  const { stdout } = await invoke(['status', '-e', 'x'], { backend });
  expect(stdout).toMatch(/^state +vacant \(no leader is on record\)$/m);
  expect(stdout).toMatch(new RegExp(`^settling +${words.source}$`, 'm'));
  const [json] = jsonLines((await invoke(['status', '-e', 'x', '--json'], { backend })).stdout);
  const leftMs = Date.parse(String(json?.['settlingUntil'])) - Date.now();
  expect(leftMs).toBeGreaterThan(0);
  expect(leftMs).toBeLessThanOrEqual(11_000);
  const leader = await invoke(['leader', '-e', 'x'], { backend });
  expect(leader.code).toBe(1);
  expect(leader.stderr).toMatch(
    new RegExp(`^incumbent: nobody leads election "x": ${words.source}\n$`),
  );
});

test('watch says it in the line of the vacancy, and so does its JSON', async () => {
  for (const json of [[], ['--json']]) {
    const watch = new Running(['watch', '-e', 'x', ...json], { backend: settles() });
    await watch.printed(/\n/);
    watch.signal('SIGINT');
    const { stdout } = await watch.result;
    if (json.length === 0) {
      expect(stdout).toMatch(/ {2}vacant {3}no leader is on record; the store was restarted/);
    } else {
      expect(jsonLines(stdout)).toMatchObject([{ why: expect.stringMatching(words) }]);
    }
  }
});

test('watch says until when a seat is reserved', async () => {
  const backend = altered({
    inspect: async () => ({
      ...empty,
      view: { state: 'vacant', token: 3n, sinceUnixMs: 0 },
      reservation: { for: 'host-8', untilUnixMs: Date.now() + 60_000 },
    }),
  });
  const watch = new Running(['watch', '-e', 'x'], { backend });
  await watch.printed(/; the seat is reserved for "host-8" until /);
  watch.signal('SIGINT');
  await watch.result;
});

test('while the seat is vacant, status lists the waiting candidates', async () => {
  const backend = memory();
  const status = async () => (await invoke(['status', '-e', 'x'], { backend })).stdout;
  const json = async () =>
    jsonLines((await invoke(['status', '-e', 'x', '--json'], { backend })).stdout);
  expect(await status()).toMatch(/^waiting +nobody$/m);
  expect(await json()).toMatchObject([{ waiting: [] }]);
  const election = createElection({ name: 'x', backend, candidate: { id: 'host-7' } });
  const term = await election.campaign();
  onTestFinished(() => term[Symbol.asyncDispose]());
  expect(await status()).not.toContain('waiting');
  expect(await json()).toMatchObject([{ waiting: null }]);
});

test('a store that cannot list candidates is not asked for them twice', async () => {
  const backend = altered({ canListCandidates: false });
  const { code, stdout } = await invoke(['status', '-e', 'x'], { backend });
  expect(code).toBe(0);
  expect(stdout).not.toContain('waiting');
});
