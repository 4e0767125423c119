/** The demands on the listing of a backend's elections, one scenario per rule. */
import assert from 'node:assert/strict';
import { InvalidOptionError } from '../base/errors.ts';
import { inParallel } from '../base/in-parallel.ts';
import type { Backend, ElectionSummary } from '../core/contest.ts';
import { createElection } from '../core/election.ts';
import type { Scenario } from './conformance.ts';
import type { Context } from './scenario-support.ts';
import { background, campaign, candidate, end, within } from './scenario-support.ts';

/** More than a page of any store that has pages. */
const manyElections = 1_050;
const madeAtOnce = 20;
const patientLeaseMs = 60_000;

/** The rules for `backend.elections` and `backend.survey`. */
export const listingScenarios: readonly Scenario<Backend>[] = [
  {
    name: 'elections are listed by their exact names, whatever characters these have',
    async run(context) {
      const backend = await context.open();
      const names = namesOfEveryKind(context.election);
      const taken = await inParallel(names, madeAtOnce, (name) => make(context, backend, name));
      const made = names.filter((_, index) => taken[index]);
      assert.ok(made.length > 0, 'the store takes no name at all');
      assert.deepEqual(await namesIn(context, backend), made.sort());
      const summaries = await summariesIn(context, backend);
      assert.deepEqual(summaries.map(({ name }) => name).sort(), made);
      for (const { name, view, drains } of summaries) {
        assert.notEqual(view.state, 'unknown', `${name}: ${view.error?.message}`);
        assert.equal(drains[0]?.id, name.slice(0, 50), 'each has its own record');
      }
    },
  },
  {
    name: 'more elections than one answer holds are all listed, each of them once',
    async run(context) {
      const backend = await context.open();
      const names = Array.from({ length: manyElections }, (_, i) => `${context.election}-${i}`);
      await inParallel(names, madeAtOnce, (name) => make(context, backend, name));
      names.sort();
      assert.deepEqual(await namesIn(context, backend), names);
      const summaries = await summariesIn(context, backend);
      assert.deepEqual(summaries.map(({ name }) => name).sort(), names);
    },
  },
  {
    name: 'an election that was only looked at is not listed, and listing makes none',
    async run(context) {
      const watcher = await candidate(context, 'watcher');
      await within(context, 4, watcher.leader());
      const backend = await context.open();
      assert.deepEqual(await namesIn(context, backend), []);
      assert.deepEqual(await summariesIn(context, backend), []);
    },
  },
  {
    name: 'a survey shows who leads, who waits, and why the last term ended',
    async run(context) {
      const [a, b] = [await candidate(context, 'a'), await candidate(context, 'b')];
      const backend = await context.open();
      const summary = async () => {
        const [found] = await summariesIn(context, backend);
        assert.ok(found !== undefined, 'it is not listed');
        assert.equal(found.name, context.election);
        return found;
      };
      const first = await campaign(context, a);
      const stop = new AbortController();
      const waiting = background(b.campaign({ signal: stop.signal }));
      const isWaiting = async () => {
        for (;;) {
          const found = await summary();
          if (found.waiting === undefined || found.waiting.length > 0) return found;
          await context.wait(context.leaseMs / 50);
        }
      };
      const led = await within(context, 4, isWaiting());
      assert.equal(led.view.state, 'led');
      assert.equal(led.view.leader?.id, 'a');
      assert.equal(led.view.token, first.token);
      if (led.waiting !== undefined) assert.deepEqual(idsOf(led.waiting), ['b']);
      stop.abort(new Error('done'));
      await assert.rejects(within(context, 2, waiting));
      await end(context, first);
      const vacant = await summary();
      assert.equal(vacant.view.state, 'vacant');
      assert.equal(vacant.view.token, first.token);
      assert.deepEqual(
        vacant.history.map(({ id, why }) => [id, why]),
        [['a', 'resigned']],
      );
      if (vacant.waiting !== undefined) assert.deepEqual(idsOf(vacant.waiting), []);
    },
  },
  {
    name: 'a listing that is aborted rejects with the reason, and does not look like a whole one',
    async run(context) {
      const backend = await context.open();
      await make(context, backend, `${context.election}-a`);
      await make(context, backend, `${context.election}-b`);
      const { clock } = context;
      const reason = new Error('enough');
      const before = async () => {
        const signal = AbortSignal.abort(reason);
        for await (const name of backend.elections({ signal, clock })) assert.fail(name);
      };
      await assert.rejects(within(context, 4, before()), reason);
      const stop = new AbortController();
      const within1 = async () => {
        for await (const _ of backend.survey({ signal: stop.signal, clock })) stop.abort(reason);
      };
      await assert.rejects(within(context, 4, within1()), reason);
    },
  },
];

/** Every printable character of ASCII, and others that stores and clients are known to change. */
function namesOfEveryKind(prefix: string): readonly string[] {
  const ascii = Array.from({ length: 0x7f - 0x20 }, (_, i) => String.fromCodePoint(0x20 + i));
  const others = ['é', 'e\u0301', 'ß', 'İ', '中', '👩‍👩‍👧', '\ufeff', '\u00a0', '\u200d', '\ufffd'];
  const inside = [...ascii, ...others].map((character) => `${prefix}-${character}-`);
  const behind = [...ascii, ...others].map((character) => `${prefix}-end${character}`);
  const escapes = [
    '%20',
    '%',
    '%%',
    '%zz',
    '+',
    '&amp;',
    '\\u0041',
    '{a}',
    '}{',
    '*?[a]',
    "''",
    '--',
    '""',
  ];
  return [
    ...new Set([
      ...[...inside, ...behind, ...escapes.map((each) => `${prefix}-esc-${each}`)],
      ...[`${prefix}-a/b`, `${prefix}-a/b/c`, `${prefix}-a`, `${prefix}-A`],
      `${prefix}-`.padEnd(120, 'x'),
    ]),
  ];
}

/**
 * Makes an election without a campaign: an operator's change is its first record.
 * @returns false for a name that the store refuses
 */
async function make(context: Context, backend: Backend, name: string): Promise<boolean> {
  const { clock } = context;
  // Many are made at once, so each may take its time. A session has a lease of its own.
  const lease = backend.limits?.sessionTimeoutMs === undefined ? { lease: patientLeaseMs } : {};
  let election: ReturnType<typeof createElection>;
  try {
    election = createElection({ name, backend, clock, ...lease });
  } catch (error) {
    if (error instanceof InvalidOptionError) return false;
    throw error;
  }
  try {
    const until = new Date(clock.wallMs() + 3_600_000);
    await within(context, 20, election.drain(name.slice(0, 50), until));
    return true;
  } finally {
    await within(context, 20, election.close());
  }
}

/** Other scenarios may have left elections in the same store. */
function isOurs(context: Context, name: string): boolean {
  return name === context.election || name.startsWith(`${context.election}-`);
}

async function namesIn(context: Context, backend: Backend): Promise<readonly string[]> {
  const names: string[] = [];
  const list = async () => {
    for await (const name of backend.elections({ clock: context.clock })) {
      if (isOurs(context, name)) names.push(name);
    }
  };
  await within(context, 30, list());
  return names.sort();
}

async function summariesIn(
  context: Context,
  backend: Backend,
): Promise<readonly ElectionSummary[]> {
  const summaries: ElectionSummary[] = [];
  const survey = async () => {
    for await (const summary of backend.survey({ clock: context.clock })) {
      if (isOurs(context, summary.name)) summaries.push(summary);
    }
  };
  await within(context, 30, survey());
  return summaries;
}

function idsOf(candidates: readonly { readonly id: string }[]): readonly string[] {
  return candidates.map(({ id }) => id);
}
