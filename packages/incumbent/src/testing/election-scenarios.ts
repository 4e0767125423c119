/** The promises of an election to its users on every backend, one scenario per rule. */
import assert from 'node:assert/strict';
import { ElectionEndedError, NotElectedError } from '../base/errors.ts';
import type { EndReason } from '../base/reasons.ts';
import { Deferred } from '../base/wait.ts';
import type { Backend } from '../core/contest.ts';
import { giveBackSeat } from '../core/give-back-seat.ts';
import type { SeatIdentity } from '../core/seat-identity.ts';
import type { Term } from '../core/term.ts';
import type { View } from '../record/record.ts';
import type { Scenario } from './conformance.ts';
import type { Context } from './scenario-support.ts';
import {
  aborted,
  background,
  campaign,
  candidate,
  compareTokens,
  end,
  eventually,
  StoppableClock,
  within,
  withoutTrouble,
} from './scenario-support.ts';

/** A leads and then stands still, as if it had died: nothing of it is sent any more. */
async function deadLeader(context: Context) {
  const clock = new StoppableClock(context.clock);
  const a = await candidate(context, 'a', { clock });
  context.onCleanUp(() => clock.goOn());
  const b = await candidate(context, 'b');
  let told: SeatIdentity | undefined;
  const first = await within(
    context,
    4,
    a.campaign({
      onSeat: (seat) => {
        told = seat;
      },
    }),
  );
  clock.stop();
  const seat = () => told;
  return { b, first, seat, clock };
}

async function giveBack(
  context: Context,
  seat: SeatIdentity | undefined,
  hasWorkEnded = true,
): Promise<boolean | undefined> {
  // Where the mechanism has no such write, no witness is told of the seat.
  if (seat === undefined) return undefined;
  const { election: name, clock, leaseMs: lease } = context;
  const { signal } = new AbortController();
  const backend = await context.open();
  return giveBackSeat({ name, backend, clock, lease, seat, hasWorkEnded, signal });
}

/** The rules that every backend has to keep. Run them with `runConformance`. */
export const electionScenarios: readonly Scenario<Backend>[] = [
  {
    name: 'one leads at a time, and every term has a larger token',
    async run(context) {
      const tokens: bigint[] = [];
      const leading = new Set<Term>();
      const each = 4;
      const compete = async (id: string) => {
        const election = await candidate(context, id);
        for (let terms = 0; terms < each; terms += 1) {
          await election.lead(async (term) => {
            assert.ok(term.isLeading(), 'work starts while leading');
            for (const other of leading) assert.ok(!other.isLeading(), 'two terms lead');
            leading.add(term);
            tokens.push(term.token);
            await context.wait(context.leaseMs / 50);
            leading.delete(term);
          });
        }
      };
      await within(context, 20, Promise.all(['a', 'b', 'c'].map(compete)));
      assert.equal(tokens.length, 3 * each);
      assert.deepEqual(tokens, [...new Set(tokens)].sort(compareTokens), 'tokens rise');
    },
  },
  {
    name: 'a leader keeps its term for many leases',
    async run(context) {
      const election = await candidate(context, 'a');
      const term = await campaign(context, election);
      for (let i = 0; i < 20; i += 1) {
        await context.wait(context.leaseMs / 4);
        assert.ok(term.isLeading(), `leading after ${i + 1} quarters of a lease`);
        assert.ok(!term.signal.aborted);
      }
      term.assertLeading(1);
      await end(context, term);
    },
  },
  {
    name: 'who resigns is followed at once, and the successor knows that it was clean',
    async run(context) {
      const [a, b] = [await candidate(context, 'a'), await candidate(context, 'b')];
      const first = await campaign(context, a);
      const following = background(b.campaign());
      await context.wait(context.leaseMs / 4);
      assert.ok(first.isLeading(), 'the first goes on leading');
      const outcome = await end(context, first);
      assert.deepEqual([outcome.reason, outcome.released], ['resigned', true]);
      assert.ok(!first.isLeading());
      const second = await within(context, 1, following);
      assert.ok(second.token > first.token, `${second.token} after ${first.token}`);
      assert.equal(second.predecessor?.id, 'a');
      assert.equal(second.predecessor?.clean, true);
      await end(context, second);
    },
  },
  {
    name: 'tokens go on rising after everybody has closed and opened again',
    async run(context) {
      let last = 0n;
      for (const id of ['a', 'b', 'a']) {
        const election = await candidate(context, id);
        const term = await campaign(context, election);
        assert.ok(term.token > last, `${term.token} after ${last}`);
        last = term.token;
        await end(context, term);
        await within(context, 2, election.close());
      }
    },
  },
  {
    name: 'closing a handle ends its term and gives the seat back',
    async run(context) {
      const [a, b] = [await candidate(context, 'a'), await candidate(context, 'b')];
      const started = new Deferred<Term>();
      void background(
        a.lead(async (term) => {
          started.resolve(term);
          await aborted(term.signal);
        }),
      );
      const term = await within(context, 4, started.promise);
      await within(context, 4, a.close());
      assert.ok(term.signal.aborted);
      assert.equal((await within(context, 1, term.ended)).reason, 'withdrawn');
      const next = await within(context, 1, b.campaign());
      assert.equal(next.predecessor?.clean, true);
      await end(context, next);
    },
  },
  {
    name: 'a witness of its death gives the seat of a leader back, and what the dead one sends later changes nothing',
    async run(context) {
      const { b, first, seat, clock } = await deadLeader(context);
      const fenced: string[] = [];
      const onUnclean = (predecessor: { id: string }) => void fenced.push(predecessor.id);
      const following = background(b.campaign({ onUnclean }));
      const isGivenBack = await giveBack(context, seat());
      // Not every mechanism has such a write. Then its lease runs out.
      if (isGivenBack !== undefined) {
        assert.equal(isGivenBack, true);
        const second = await within(context, 0.7, following);
        assert.ok(second.token > first.token);
        assert.deepEqual(fenced, []);
        assert.deepEqual([second.predecessor?.id, second.predecessor?.clean], ['a', true]);
        assert.equal(await giveBack(context, seat()), false, 'the seat of its successor');
        clock.goOn();
        await eventually(context, 2, 'its term ends', () => first.signal.aborted);
        await end(context, first);
        await context.wait(context.leaseMs);
        assert.ok(second.isLeading(), 'the successor leads on');
        assert.deepEqual(
          (await b.history()).map(({ token, id }) => [token, id]),
          [[first.token, 'a']],
        );
      }
      clock.goOn();
      await end(context, first);
      await end(context, await within(context, 4, following));
    },
  },
  {
    name: 'a witness gives back nothing but the very term that it saw end, and leaves it to be fenced if the work may live',
    async run(context) {
      const { b, first, seat, clock } = await deadLeader(context);
      const told = seat();
      const others: readonly Partial<SeatIdentity>[] = [
        { id: 'b' },
        { incarnation: 'another' },
        { token: String(first.token + 1n) },
        { nonces: ['another'] },
      ];
      for (const other of others) {
        const isGivenBack = await giveBack(context, told && { ...told, ...other });
        assert.notEqual(isGivenBack, true, `as if it had been ${Object.keys(other)}`);
      }
      assert.equal((await b.leader()).leader?.id, 'a');
      const fenced: string[] = [];
      const onUnclean = (predecessor: { id: string }) => void fenced.push(predecessor.id);
      const following = background(b.campaign({ onUnclean }));
      if ((await giveBack(context, told, false)) !== undefined) {
        const second = await within(context, 0.7, following);
        assert.deepEqual(fenced, ['a']);
        assert.equal(second.predecessor?.clean, false);
      }
      clock.goOn();
      await end(context, first);
      await end(context, await within(context, 4, following));
    },
  },
  {
    name: 'a leader that falls silent is replaced when its lease has run out, and not before',
    async run(context) {
      const clock = new StoppableClock(context.clock);
      const a = await candidate(context, 'a', { clock });
      context.onCleanUp(() => clock.goOn());
      const b = await candidate(context, 'b');
      const first = await campaign(context, a);
      const fenced: string[] = [];
      const onUnclean = (predecessor: { id: string }) => void fenced.push(predecessor.id);
      const following = background(b.campaign({ onUnclean }));
      await context.wait(context.leaseMs / 2);
      // Nothing is sent from here on, because silencing it may take a while.
      const silentSinceMs = context.clock.monotonicMs();
      const remainingMs = first.remaining();
      clock.stop();
      await context.silence(a.backend);
      const second = await within(context, 5, following);
      const tookMs = context.clock.monotonicMs() - silentSinceMs;
      assert.ok(!first.isLeading(), 'the first must not believe any more');
      const { leaseMs, beliefMs, renewEveryMs } = a.timing;
      // A busy process may have been confirmed a while before, by a write that left the lease
      // as it was.
      const leastMs = leaseMs - (beliefMs - remainingMs) - renewEveryMs;
      assert.ok(tookMs >= leastMs, `replaced after ${tookMs} ms, the lease is ${leaseMs} ms`);
      assert.ok(second.token > first.token);
      assert.equal(second.predecessor?.clean, false, 'nobody confirmed its end');
      assert.deepEqual(fenced, ['a'], 'the hook ran before the term began');
      clock.goOn();
      const outcome = await within(
        context,
        3,
        first[Symbol.asyncDispose]().then(() => first.ended),
      );
      assert.equal(outcome.released, false);
      assert.ok(second.isLeading(), 'the successor’s seat is untouched');
      await end(context, second);
    },
  },
  {
    name: 'work is told to stop before belief ends when nothing is confirmed any more',
    async run(context) {
      const clock = new StoppableClock(context.clock);
      const a = await candidate(context, 'a', { clock });
      context.onCleanUp(() => clock.goOn());
      const term = await campaign(context, a);
      await context.wait(context.leaseMs / 2);
      clock.stop();
      await context.wait(2 * context.leaseMs);
      assert.ok(!term.isLeading(), 'belief is over, though no code of ours has run');
      assert.throws(() => term.assertLeading());
      clock.goOn();
      await within(context, 1, aborted(term.signal));
      const outcome = await end(context, term);
      const losses: readonly EndReason[] = ['renewal-failed', 'stalled', 'session-expired'];
      assert.ok(losses.includes(outcome.reason), outcome.reason);
    },
  },
  {
    name: 'campaigning without waiting gives up while somebody leads',
    async run(context) {
      const [a, b] = [await candidate(context, 'a'), await candidate(context, 'b')];
      const term = await campaign(context, a);
      await assert.rejects(within(context, 2, b.campaign({ wait: 0 })), NotElectedError);
      const wait = context.leaseMs / 2;
      await assert.rejects(within(context, 4, b.campaign({ wait })), NotElectedError);
      assert.ok(term.isLeading());
      await end(context, term);
      await end(context, await within(context, 4, b.campaign({ wait: 4 * context.leaseMs })));
    },
  },
  {
    name: 'a candidate that withdraws while waiting leaves nothing behind',
    async run(context) {
      const [a, b] = [await candidate(context, 'a'), await candidate(context, 'b')];
      const term = await campaign(context, a);
      const stop = new AbortController();
      const waiting = background(b.campaign({ signal: stop.signal }));
      await context.wait(context.leaseMs / 4);
      const reason = new Error('not any more');
      stop.abort(reason);
      await assert.rejects(within(context, 2, waiting), reason);
      assert.ok(term.isLeading());
      await end(context, term);
      assert.equal((await a.leader()).state, 'vacant');
    },
  },
  {
    name: 'a leader that is asked to vacate goes, and somebody else leads',
    async run(context) {
      const [a, b] = [await candidate(context, 'a'), await candidate(context, 'b')];
      const first = await campaign(context, a);
      const following = background(b.campaign());
      await context.wait(context.leaseMs / 4);
      const operator = await candidate(context, 'operator');
      assert.equal((await within(context, 2, operator.vacate())).changed, true);
      await within(context, 2, aborted(first.signal));
      assert.equal((await end(context, first)).reason, 'vacated');
      const second = await within(context, 2, following);
      assert.equal(second.candidate, 'b');
      await end(context, second);
      assert.equal((await within(context, 2, operator.vacate())).changed, false);
    },
  },
  {
    name: 'a forced vacate never makes two leaders',
    async run(context) {
      const [a, b] = [await candidate(context, 'a'), await candidate(context, 'b')];
      const first = await campaign(context, a);
      const following = background(b.campaign());
      const operator = await candidate(context, 'operator');
      await within(context, 2, operator.vacate({ force: true }));
      await within(context, 2, aborted(first.signal));
      const ended = background(end(context, first));
      const second = await within(context, 5, following);
      assert.ok(!first.isLeading());
      // Beside members that do not wait there is no time to look why a place is gone.
      const { reason } = await ended;
      assert.ok(reason === 'vacated' || reason === 'record-gone', reason);
      await end(context, second);
    },
  },
  {
    name: 'the seat is handed over to the candidate that was named',
    async run(context) {
      const [a, b, c] = [
        await candidate(context, 'a'),
        await candidate(context, 'b'),
        await candidate(context, 'c'),
      ];
      const first = await campaign(context, a);
      const others = new AbortController();
      const losing = background(b.campaign({ signal: others.signal }));
      const following = background(c.campaign());
      await context.wait(context.leaseMs / 2);
      await within(context, 2, a.transfer('c'));
      await within(context, 2, aborted(first.signal));
      assert.equal((await end(context, first)).reason, 'handed-over');
      const second = await within(context, 2, following);
      assert.equal(second.candidate, 'c');
      others.abort(new Error('done'));
      await assert.rejects(within(context, 2, losing));
      await end(context, second);
    },
  },
  {
    name: 'a drained leader goes and stays out until then',
    async run(context) {
      const [a, b] = [await candidate(context, 'a'), await candidate(context, 'b')];
      const first = await campaign(context, a);
      const forMs = 2 * context.leaseMs;
      const untilUnixMs = context.clock.wallMs() + forMs;
      await within(context, 2, b.drain('a', new Date(untilUnixMs)));
      await within(context, 2, aborted(first.signal));
      await end(context, first);
      const second = await campaign(context, b);
      await end(context, second);
      // The seat is vacant, but for now only others may have it.
      const again = await within(context, 6, a.campaign());
      assert.ok(context.clock.wallMs() >= untilUnixMs, 'it came back too early');
      await end(context, again);
    },
  },
  {
    name: 'an election that was ended ends terms and campaigns, until it is opened again',
    async run(context) {
      const [a, b] = [await candidate(context, 'a'), await candidate(context, 'b')];
      const first = await campaign(context, a);
      const waiting = background(b.campaign());
      await context.wait(context.leaseMs / 4);
      const operator = await candidate(context, 'operator');
      await within(context, 2, operator.end());
      await within(context, 2, aborted(first.signal));
      assert.equal((await end(context, first)).reason, 'election-ended');
      await assert.rejects(within(context, 2, waiting), ElectionEndedError);
      assert.equal((await operator.leader()).state, 'ended');
      await assert.rejects(within(context, 2, b.campaign()), ElectionEndedError);
      await within(context, 2, operator.reopen());
      const second = await campaign(context, b);
      assert.ok(second.token > first.token, 'the token survives the end');
      await end(context, second);
    },
  },
  {
    name: 'an observer sees vacant, led, vacant: every change, and nothing twice',
    async run(context) {
      const [a, watcher] = [await candidate(context, 'a'), await candidate(context, 'watcher')];
      const views: View[] = [];
      const stop = new AbortController();
      const watching = background(
        (async () => {
          for await (const view of watcher.observe({ signal: stop.signal })) views.push(view);
        })(),
      );
      const sees = (state: View['state'], count: number) =>
        eventually(context, 3, `view ${count} is ${state}`, () => {
          return views.length >= count && views.at(-1)?.state === state;
        });
      await sees('vacant', 1);
      const term = await campaign(context, a);
      await sees('led', 2);
      assert.equal(views.at(-1)?.leader?.id, 'a');
      assert.equal(views.at(-1)?.token, term.token);
      await context.wait(2 * context.leaseMs);
      await end(context, term);
      await sees('vacant', 3);
      stop.abort();
      await within(context, 2, watching);
      assert.deepEqual(withoutTrouble(views), ['vacant', 'led', 'vacant']);
    },
  },
  {
    name: 'what the leader proclaims is what others read',
    async run(context) {
      const [a, watcher] = [
        await candidate(context, 'a', {
          candidate: { id: 'a', addresses: ['10.0.0.1:80'], metadata: { build: 'one' } },
        }),
        await candidate(context, 'watcher'),
      ];
      const term = await campaign(context, a);
      const before = await within(context, 2, watcher.leader());
      assert.deepEqual(before.leader?.addresses, ['10.0.0.1:80']);
      assert.deepEqual({ ...before.leader?.metadata }, { build: 'one' });
      const proclaimed = { addresses: ['10.0.0.2:80', '[::1]:80'], metadata: { build: '二' } };
      await within(context, 2, term.proclaim(proclaimed));
      const after = await within(context, 2, watcher.leader());
      assert.deepEqual(after.leader?.addresses, proclaimed.addresses);
      assert.deepEqual({ ...after.leader?.metadata }, proclaimed.metadata);
      assert.equal(after.token, term.token, 'the term is the same');
      await end(context, term);
    },
  },
  {
    name: 'a leader is seen as ready only when its work has said so, and gives way if it never does',
    async run(context) {
      const [a, b] = [await candidate(context, 'a'), await candidate(context, 'b')];
      const watcher = await candidate(context, 'watcher');
      const seen: string[] = [];
      const stop = new AbortController();
      const watching = background(
        (async () => {
          for await (const { state, ready } of watcher.observe({ signal: stop.signal })) {
            if (state === 'led') seen.push(ready === true ? 'ready' : 'not ready');
          }
        })(),
      );
      const sees = (what: string) =>
        eventually(context, 3, `the leader is ${what}`, () => seen.at(-1) === what);
      const isReady = async () => (await within(context, 2, watcher.leader())).ready;
      const term = await within(context, 4, a.campaign({ ready: 'manual' }));
      assert.equal(term.isReady, false);
      await sees('not ready');
      // Confirmations, a proclamation and an operator's write must not say more than the work has.
      await context.wait(2 * context.leaseMs);
      await within(context, 2, term.proclaim({ metadata: { build: 'two' } }));
      await within(context, 3, watcher.drain('c', new Date(context.clock.wallMs() + 60_000)));
      await context.wait(context.leaseMs);
      assert.equal(await isReady(), false);
      assert.ok(!seen.includes('ready'), 'nobody is told sooner');
      await within(context, 2, term.ready());
      assert.equal(term.isReady, true);
      assert.equal(await isReady(), true);
      await sees('ready');
      assert.equal((await within(context, 2, watcher.leader())).token, term.token);
      await end(context, term);
      const never = await within(
        context,
        6,
        b.campaign({ ready: 'manual', readyTimeout: context.leaseMs / 2 }),
      );
      await within(context, 3, aborted(never.signal));
      const outcome = await end(context, never);
      assert.equal(outcome.reason, 'not-ready' satisfies EndReason);
      const history = await within(context, 2, watcher.history());
      assert.equal(history.at(-1)?.why, 'not-ready');
      const plain = await within(context, 6, a.campaign());
      await sees('ready');
      assert.equal(plain.isReady, true);
      await end(context, plain);
      stop.abort();
      await within(context, 2, watching);
    },
  },
  {
    name: 'the history names past terms and why they ended',
    async run(context) {
      const [a, b] = [await candidate(context, 'a'), await candidate(context, 'b')];
      const first = await campaign(context, a);
      await end(context, first);
      await within(
        context,
        4,
        b.lead(() => {}),
      );
      const history = await within(context, 2, a.history());
      assert.deepEqual(
        history.map(({ id, why }) => [id, why]),
        [
          ['a', 'resigned'],
          ['b', 'work-finished'],
        ],
      );
      assert.equal(history[0]?.token, first.token);
    },
  },
  {
    name: 'who waits is listed, the leader first',
    needs: 'lists',
    async run(context) {
      const [a, b] = [await candidate(context, 'a'), await candidate(context, 'b')];
      const term = await campaign(context, a);
      const stop = new AbortController();
      const waiting = background(b.campaign({ signal: stop.signal }));
      const names = async () => (await a.candidates()).map(({ id }) => id);
      await context.wait(context.leaseMs / 2);
      assert.deepEqual(await within(context, 2, names()), ['a', 'b']);
      stop.abort(new Error('done'));
      await assert.rejects(within(context, 2, waiting));
      assert.deepEqual(await within(context, 2, names()), ['a']);
      await end(context, term);
    },
  },
];
