import { describe, expect, test } from 'vitest';
import { createElection } from '../src/index.ts';
import type { SimulatedQueueSession } from '../src/testing/index.ts';
import { SimulatedClock, SimulatedQueueStore } from '../src/testing/index.ts';

/** T is 10 s, so H is 4 s, R and X are 1 s, and G is 0.5 s. The successor waits H·1.05/0.95. */
const beliefMs = 4_000;
const waitMs = (beliefMs * 1.05) / 0.95;

function setUp(options: { readonly isMixed?: boolean } = {}) {
  const clock = new SimulatedClock();
  const store = new SimulatedQueueStore({ clock, ...options });
  const elect = (session: SimulatedQueueSession, id: string) =>
    createElection({
      name: 'jobs',
      backend: session.backend,
      clock,
      candidate: { id },
      random: () => 0,
    });
  /** Leads, and another one waits behind it. */
  const leadWithFollower = async () => {
    const [a, b] = [store.connect(), store.connect()];
    const leading = elect(a, 'a').campaign();
    await clock.advance(1);
    const term = await leading;
    const following = elect(b, 'b').campaign();
    await clock.advance(1);
    return { a, b, term, following };
  };
  return { clock, store, elect, leadWithFollower };
}

describe('a simulated store with sessions', () => {
  test('lines candidates up; a clean end hands over at once', async () => {
    const { clock, store, leadWithFollower } = setUp();
    const { term, following } = await leadWithFollower();
    expect(store.waiting('jobs')).toEqual(['a', 'b']);
    expect(store.record('jobs')?.holding?.candidate.id).toBe('a');
    const disposing = term[Symbol.asyncDispose]();
    await clock.advance(1);
    await disposing;
    const next = await following;
    expect(next.predecessor).toMatchObject({ id: 'a', clean: true });
    expect(next.token).toBeGreaterThan(term.token);
  });

  test('keeps the successor of an unclean leader waiting until that one’s belief is over', async () => {
    const { clock, leadWithFollower } = setUp();
    const { a, term, following } = await leadWithFollower();
    // The leader’s server has lost its quorum: its session ends, and it hears nothing of that.
    a.outage = 'cut-off';
    a.expire({ unheard: true });
    let isLed = false;
    void following.then(() => {
      isLed = true;
    });
    await clock.advance(waitMs - 10);
    expect(term.isLeading()).toBe(false);
    expect(isLed).toBe(false);
    await clock.advance(20);
    const next = await following;
    expect(next.isLeading()).toBe(true);
    expect(next.predecessor).toMatchObject({ id: 'a', clean: false });
  });

  test('answers reads of a session that is cut off, from its own data, and nothing else', async () => {
    const { clock, store, leadWithFollower } = setUp();
    const { a } = await leadWithFollower();
    const queue = a.open('jobs');
    a.lag();
    a.outage = 'cut-off';
    const [first] = store.places('jobs');
    store.deletePlace(first as string);
    const never = new AbortController().signal;
    expect(await queue.list(never)).toHaveLength(2);
    expect(store.places('jobs')).toHaveLength(1);
    let isAnswered = false;
    void queue.sync(never).then(() => {
      isAnswered = true;
    });
    await clock.advance(10_000);
    expect(isAnswered).toBe(false);
    a.outage = 'none';
    a.catchUp();
    expect(await queue.list(never)).toHaveLength(1);
  });

  test('applies an entry whose reply is lost, and it is found again', async () => {
    const { clock, store, elect } = setUp();
    const a = store.connect();
    a.next('enter', { lose: 'reply' });
    const leading = elect(a, 'a').campaign();
    await clock.advance(500);
    expect(store.waiting('jobs')).toEqual(['a']);
    await clock.advance(20_000);
    await leading;
    expect(store.waiting('jobs')).toEqual(['a']);
  });

  test('applies an announcement whose reply is lost: the term names its real predecessor', async () => {
    const { clock, leadWithFollower } = setUp();
    const { b, term, following } = await leadWithFollower();
    b.next('commit', { lose: 'reply' });
    const disposing = term[Symbol.asyncDispose]();
    await clock.advance(20_000);
    await disposing;
    expect((await following).predecessor).toMatchObject({ id: 'a', token: term.token });
  });

  test('keeps a term over a lost connection', async () => {
    const { clock, leadWithFollower } = setUp();
    const { a, term } = await leadWithFollower();
    a.suspend();
    await clock.advance(0);
    expect(term.state).toBe('uncertain');
    await clock.advance(2_000);
    expect(term.isLeading()).toBe(true);
    a.restore({ moved: true });
    await clock.advance(10);
    expect(term.state).toBe('leading');
    expect(term.remaining()).toBeGreaterThan(beliefMs - 100);
  });

  test('refuses on its old connection the operations under way when the session moved', async () => {
    const { clock, store } = setUp();
    const a = store.connect();
    const candidate = { id: 'a', incarnation: 'i', addresses: [], metadata: {} };
    a.next('enter', { requestMs: 100 });
    const entering = a.open('jobs').enter({ guid: 'g', candidate }, new AbortController().signal);
    const refused = expect(entering).rejects.toThrow(/another connection/);
    a.restore({ moved: true });
    await clock.advance(100);
    await refused;
    expect(store.places('jobs')).toEqual([]);
  });

  test('ends a session: its places are gone, and later ones belong to another', async () => {
    const { clock, store, leadWithFollower } = setUp();
    const { a, term } = await leadWithFollower();
    a.expire();
    await clock.advance(0);
    expect(term.isLeading()).toBe(false);
    const disposing = term[Symbol.asyncDispose]();
    await clock.advance(1);
    await disposing;
    expect(await term.ended).toMatchObject({ reason: 'session-expired', released: false });
    expect(store.waiting('jobs')).toEqual(['b']);
  });

  test('holds an operation until the test lets it go on', async () => {
    const { clock, store, elect } = setUp();
    const a = store.connect();
    a.hold('commit');
    const leading = elect(a, 'a').campaign();
    await clock.advance(1);
    const [held] = a.held;
    held?.apply();
    expect(store.record('jobs')?.holding?.candidate.id).toBe('a');
    held?.answer();
    await clock.advance(0);
    await leading;
    expect(a.sent.get('commit')).toBe(1);
  });

  test('lets strangers in where the queue is mixed', async () => {
    const { clock, store, elect } = setUp({ isMixed: true });
    const place = store.enterForeign('jobs', 'theirs');
    const b = store.connect();
    const election = elect(b, 'b');
    const following = election.campaign();
    await clock.advance(1);
    expect((await election.candidates()).map(({ id }) => id)).toEqual(['theirs', 'b']);
    store.deletePlace(place);
    await clock.advance(waitMs + 10);
    expect((await following).isLeading()).toBe(true);
  });
});
