import { expect, test } from 'vitest';
import type { Row } from '../src/backends/postgres/driver.ts';
import type { Renewal } from '../src/backends/postgres/renewals.ts';
import { Renewals } from '../src/backends/postgres/renewals.ts';

const never = new AbortController().signal;
const statementsAtOnce = 4;

interface Sent {
  readonly text: string;
  /** The names of the records. */
  readonly names: readonly string[];
  readonly signal: AbortSignal | undefined;
  answer(names: readonly string[]): Promise<void>;
  fail(error: unknown): Promise<void>;
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A server that answers when it is told to. */
function stand() {
  const sent: Sent[] = [];
  const renewals = new Renewals({
    query: (text, values, signal) =>
      new Promise<readonly Row[]>((resolve, reject) => {
        const [first = ''] = values;
        const names =
          text === 'one'
            ? [first ?? '']
            : (JSON.parse(first ?? '') as Renewal['row'][]).map(({ name }) => name);
        sent.push({
          ...{ text, names, signal },
          answer: (replaced) => {
            resolve(replaced.map((name) => [name]));
            return settled();
          },
          fail: (error) => {
            reject(error);
            return settled();
          },
        });
      }),
  });
  const renew = (name: string, { life = 'life', signal = never } = {}) => {
    const renewal: Renewal = {
      ...{ text: 'one', values: [name], manyText: 'many', shared: ['1s', life], row: { name } },
    };
    return renewals.replace(renewal, signal).then(
      (rows) => rows.length,
      (error: unknown) => error,
    );
  };
  return { sent, renew };
}

/** As many statements as may be under way, the first of them for one record that is alone. */
async function busy(renew: (name: string) => unknown) {
  for (let i = 0; i < statementsAtOnce; i += 1) void renew(`busy-${i}`);
  await settled();
}

test('a renewal that is alone has a statement to itself', async () => {
  const { sent, renew } = stand();
  const renewed = renew('a');
  expect(sent.map(({ text, names }) => [text, names])).toEqual([['one', ['a']]]);
  await sent[0]?.answer(['a']);
  expect(await renewed).toBe(1);
});

test('renewals that come while statements are under way share the next one', async () => {
  const { sent, renew } = stand();
  await busy(renew);
  const renewed = Array.from({ length: 50 }, (_, index) => renew(`${index}`));
  expect(sent.length).toBe(statementsAtOnce);
  await sent[1]?.answer(['busy-1']);
  expect(sent.length).toBe(statementsAtOnce + 1);
  const { text, names } = sent.at(-1) as Sent;
  expect([text, names.length]).toEqual(['many', 50]);
  await sent.at(-1)?.answer(names);
  expect(await Promise.all(renewed)).toEqual(names.map(() => 1));
});

test('a row that is locked holds up its own renewal and no other', async () => {
  const { sent, renew } = stand();
  let isOver = false;
  void renew('locked').then(() => {
    isOver = true;
  });
  for (let i = 0; i < 20; i += 1) {
    const renewed = renew(`${i}`);
    await sent.at(-1)?.answer([`${i}`]);
    expect(sent.at(-1)?.text).toBe('many');
    expect(await renewed).toBe(1);
  }
  expect(isOver).toBe(false);
});

test('one that is left out is tried by itself, and its own statement says what became of it', async () => {
  const { sent, renew } = stand();
  await busy(renew);
  const [good, moved] = [renew('good'), renew('moved')];
  await sent[1]?.answer(['busy-1']);
  await sent.at(-1)?.answer(['good']);
  expect(await good).toBe(1);
  expect(sent.at(-1)).toMatchObject({ text: 'one', names: ['moved'] });
  await sent.at(-1)?.answer([]);
  expect(await moved).toBe(0);
});

test('a statement that the server has refused is undone, so each is tried by itself', async () => {
  const { sent, renew } = stand();
  await busy(renew);
  const both = [renew('a'), renew('b')];
  await sent[1]?.answer(['busy-1']);
  await sent.at(-1)?.fail(Object.assign(new Error('could not serialize'), { code: '40001' }));
  for (const name of ['a', 'b']) {
    expect(sent.at(-1)).toMatchObject({ text: 'one', names: [name] });
    await sent.at(-1)?.answer([name]);
  }
  expect(await Promise.all(both)).toEqual([1, 1]);
});

test.each(['ECONNRESET', 'EPIPE'])(
  'of a statement without an answer (%s) nothing is known, and none is sent again',
  async (code) => {
    const { sent, renew } = stand();
    await busy(renew);
    const both = [renew('a'), renew('b')];
    await sent[1]?.answer(['busy-1']);
    const count = sent.length;
    const lost = Object.assign(new Error('the connection was lost'), { code });
    await sent.at(-1)?.fail(lost);
    expect(await Promise.all(both)).toEqual([lost, lost]);
    expect(sent.length).toBe(count);
  },
);

test('one that is given up before its statement is never sent', async () => {
  const { sent, renew } = stand();
  await busy(renew);
  const stop = new AbortController();
  const [given, other] = [renew('given up', { signal: stop.signal }), renew('other')];
  const reason = new Error('enough');
  stop.abort(reason);
  expect(await given).toBe(reason);
  await sent[1]?.answer(['busy-1']);
  expect(sent.at(-1)?.names).toEqual(['other']);
  await sent.at(-1)?.answer(['other']);
  expect(await other).toBe(1);
});

test('a statement for many is given up when no caller waits for it any more, and not before', async () => {
  const { sent, renew } = stand();
  await busy(renew);
  const stops = [new AbortController(), new AbortController()] as const;
  const both = [renew('a', { signal: stops[0].signal }), renew('b', { signal: stops[1].signal })];
  await sent[1]?.answer(['busy-1']);
  const { signal } = sent.at(-1) as Sent;
  stops[0].abort('first');
  expect(await both[0]).toBe('first');
  expect(signal?.aborted).toBe(false);
  stops[1].abort('second');
  expect(await both[1]).toBe('second');
  expect(signal?.aborted).toBe(true);
});

test('records of two lives, and two writes of one record, are in no statement together', async () => {
  const { sent, renew } = stand();
  await busy(renew);
  const all = [renew('a'), renew('b', { life: 'another' }), renew('a'), renew('c')];
  await sent[1]?.answer(['busy-1']);
  await sent[2]?.answer(['busy-2']);
  await sent[3]?.answer(['busy-3']);
  expect(sent.slice(statementsAtOnce).map(({ names }) => names)).toEqual([
    ['a', 'c'],
    ['b'],
    ['a'],
  ]);
  for (const each of sent.slice(statementsAtOnce)) await each.answer(each.names);
  expect(await Promise.all(all)).toEqual([1, 1, 1, 1]);
});

test('a table with two rows of one name answers with both', async () => {
  const { sent, renew } = stand();
  await busy(renew);
  const [twice, once] = [renew('twice'), renew('once')];
  await sent[1]?.answer(['busy-1']);
  await sent.at(-1)?.answer(['twice', 'once', 'twice']);
  expect([await twice, await once]).toEqual([2, 1]);
});

test('statements that nobody waits for any more hold up no other, although the driver still waits', async () => {
  const { sent, renew } = stand();
  const stop = new AbortController();
  const hung = Array.from({ length: statementsAtOnce }, (_, i) =>
    renew(`hung-${i}`, { signal: stop.signal }),
  );
  const later = renew('later');
  expect(sent.length).toBe(statementsAtOnce);
  stop.abort('enough');
  expect(await Promise.all(hung)).toEqual(hung.map(() => 'enough'));
  await settled();
  expect(sent.at(-1)?.names).toEqual(['later']);
  await sent.at(-1)?.answer(['later']);
  expect(await later).toBe(1);
  // The driver's word on the others is too late, and does no harm.
  await sent[0]?.answer(['hung-0']);
  await sent[1]?.fail(new Error('the connection was lost'));
});

test('those that are left out wait for their turn, and one that is given up meanwhile is not sent', async () => {
  const { sent, renew } = stand();
  await busy(renew);
  const stop = new AbortController();
  const names = Array.from({ length: 50 }, (_, index) => `${index}`);
  const renewed = names.map((name) => renew(name, name === '7' ? { signal: stop.signal } : {}));
  await sent[1]?.answer(['busy-1']);
  await sent.at(-1)?.answer([]);
  expect(sent.length).toBe(statementsAtOnce + 2);
  stop.abort('enough');
  for (const at of [0, 2, 3]) await sent[at]?.answer(sent[at]!.names);
  for (let at = statementsAtOnce + 1; at < sent.length; at += 1) {
    const unanswered = sent.length - at;
    expect(unanswered).toBeLessThan(statementsAtOnce);
    await sent[at]?.answer(sent[at]!.names);
  }
  expect(await Promise.all(renewed)).toEqual(names.map((name) => (name === '7' ? 'enough' : 1)));
  const alone = sent.slice(statementsAtOnce + 1).flatMap((each) => each.names);
  expect(alone).toEqual(names.filter((name) => name !== '7'));
});

test('however many rows are locked, the renewals of all others go on', async () => {
  const { sent, renew } = stand();
  const locked = Array.from({ length: 10 }, (_, index) => `locked-${index}`);
  for (const name of locked) void renew(name);
  // Statements for many leave out each row that is locked. Those for one wait for it.
  const skipLocked = async () => {
    const answered = new Set<Sent>();
    for (let at = 0; at < sent.length; at += 1) {
      const each = sent[at] as Sent;
      if (each.text === 'one' || answered.has(each)) continue;
      answered.add(each);
      await each.answer(each.names.filter((name) => !name.startsWith('locked')));
    }
  };
  await skipLocked();
  const renewed = renew('free');
  await skipLocked();
  expect(await renewed).toBe(1);
  expect(sent.filter(({ text }) => text === 'one').length).toBe(statementsAtOnce - 1);
});
