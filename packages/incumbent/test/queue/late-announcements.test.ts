/** An announcement without an answer is taken back when its candidate is not to lead. */
import { describe, expect, test } from 'vitest';
import { Stage } from './support.ts';

/** An announcement is given up after 5 s: by then it is still on its way. */
const late = { requestMs: 5_500 };

/** The end of a campaign, awaited later. */
function outcome<T>(promise: Promise<T>): Promise<unknown> {
  return promise.catch((error: unknown) => error);
}

/** A clean term of `first`, so that there is a record. */
async function begun() {
  const stage = new Stage();
  await stage.soon(stage.candidate('first').election.lead(() => 1));
  return stage;
}

/** @returns whom the next leader has to fence, and how long it took, in ms */
async function successor(
  stage: Stage,
): Promise<{ readonly fenced: string[]; readonly ms: number }> {
  const fenced: string[] = [];
  const { election } = stage.candidate('successor');
  const startMs = stage.clock.monotonicMs();
  const onUnclean = ({ id }: { readonly id: string }) => void fenced.push(id);
  let ms = Number.NaN;
  const work = () => {
    ms = stage.clock.monotonicMs() - startMs;
  };
  await stage.soon(election.lead(work, { onUnclean }));
  return { fenced, ms };
}

describe.each([
  ['an election that nobody has led', async () => new Stage()],
  ['an election with a record', begun],
])('in %s', (_what, open) => {
  test.each([
    ['is on its way: it never lands', late, {}],
    ['has landed: it is taken back', { lose: 'reply' } as const, {}],
    ['lands while it is looked for: it is taken back', late, { replyMs: 700 }],
    ['never comes', { lose: 'request' } as const, {}],
    ['is answered: the seat is given back', { replyMs: 1_000 }, {}],
  ])('an announcement %s', async (_how, commit, read) => {
    const stage = await open();
    const { session, election } = stage.candidate('a');
    session.next('commit', commit);
    const stop = new AbortController();
    const waiting = outcome(election.campaign({ signal: stop.signal }));
    for (let i = 0; i < 100 && session.sent.get('commit') !== 1; i += 1)
      await stage.clock.advance(10);
    session.next('read', read);
    stop.abort(new Error('enough'));
    await stage.clock.advance(8_000);
    expect(await waiting).toMatchObject({ message: 'enough' });
    await stage.clock.advance(20_000);
    expect(stage.store.places('jobs')).toEqual([]);
    expect(stage.store.record('jobs')?.holding).toBeUndefined();
    const history = stage.store.record('jobs')?.history ?? [];
    expect(history.map(({ id }) => id)).not.toContain('a');
    expect(await successor(stage)).toMatchObject({ fenced: [], ms: expect.any(Number) });
  });

  test('a store that is away is rid of it when it comes back', async () => {
    const stage = await open();
    const { session, election } = stage.candidate('a');
    session.next('commit', { lose: 'reply' });
    const tried = outcome(election.campaign({ wait: 0 }));
    await stage.clock.advance(1_000);
    session.outage = 'refuses';
    await stage.clock.advance(6_000);
    expect(await tried).toMatchObject({ why: { kind: 'unreachable' } });
    expect(stage.store.record('jobs')?.holding?.candidate.id).toBe('a');
    session.outage = 'none';
    await stage.clock.advance(5_000);
    expect(stage.store.places('jobs')).toEqual([]);
    expect(stage.store.record('jobs')?.holding).toBeUndefined();
    expect((await successor(stage)).fenced).toEqual([]);
  });

  test('a session that ends meanwhile leaves a record that is put right all the same', async () => {
    const stage = await open();
    const { session, election } = stage.candidate('a');
    session.next('commit', { lose: 'reply' });
    const tried = outcome(election.campaign({ wait: 0 }));
    await stage.clock.advance(1_000);
    session.outage = 'refuses';
    await stage.clock.advance(6_000);
    await tried;
    session.outage = 'none';
    session.expire();
    await stage.clock.advance(5_000);
    expect(stage.store.record('jobs')?.holding).toBeUndefined();
    expect((await successor(stage)).fenced).toEqual([]);
  });
});

test.each([
  ['lands late', late],
  ['has landed', { lose: 'reply' } as const],
])(
  'after a wait for an unclean leader: that one is still to be fenced, and nobody else, when it %s',
  async (_how, commit) => {
    const stage = new Stage();
    const dead = stage.candidate('dead');
    await stage.soon(dead.election.campaign());
    dead.session.expire({ unheard: true });
    dead.session.outage = 'silent';
    const { session, election } = stage.candidate('a');
    session.next('commit', commit);
    const stop = new AbortController();
    const waiting = outcome(election.campaign({ signal: stop.signal }));
    for (let i = 0; i < 1_000 && session.sent.get('commit') !== 1; i += 1)
      await stage.clock.advance(10);
    stop.abort(new Error('enough'));
    await stage.clock.advance(15_000);
    expect(await waiting).toMatchObject({ message: 'enough' });
    await stage.clock.advance(20_000);
    expect(stage.store.places('jobs')).toEqual([]);
    expect((await successor(stage)).fenced).toEqual(['dead']);
    const history = stage.store.record('jobs')?.history ?? [];
    expect(history.map(({ id, why }) => `${id} ${why}`)).toEqual([
      'dead unclean',
      'successor work-finished',
    ]);
  },
);
