// Commands on an election with several seats.
import { createElection } from 'incumbent';
import { memory } from 'incumbent/memory';
import { expect, onTestFinished, test } from 'vitest';
import { invoke, jsonLines, Running } from './support/invoke.ts';

/** A store on which `a` and `b` lead the two seats of election x, until the test ends. */
async function twoLeaders() {
  const backend = memory();
  for (const id of ['a', 'b']) {
    const election = createElection({ name: 'x', backend, seats: 2, candidate: { id } });
    const term = await election.campaign();
    onTestFinished(() => term[Symbol.asyncDispose]());
  }
  const whole = createElection({ name: 'x', backend, seats: 2 });
  const run = (...argv: string[]) => invoke([...argv, '-e', 'x'], { backend });
  return { backend, whole, run };
}

test('status shows all seats, or the one that it is asked for', async () => {
  const { run } = await twoLeaders();
  const { stdout } = await run('status', '--json');
  expect(jsonLines(stdout)).toMatchObject([
    { election: 'x', seat: 1, seats: 2, leader: { id: 'a' } },
    { election: 'x', seat: 2, seats: 2, leader: { id: 'b' } },
  ]);
  const second = await run('status', '--json', '--seat', '2');
  expect(jsonLines(second.stdout)).toMatchObject([{ seat: 2, leader: { id: 'b' } }]);
  const words = await run('status');
  expect(words.stdout).toContain('seat      1 of 2\n');
  expect(words.stdout).toContain('seat      2 of 2\n');
});

test.each([['vacate'], ['transfer', '--to', 'b'], ['failover'], ['history'], ['watch']])(
  '%s must be told which seat, and changes nothing before',
  async (...argv) => {
    const { run, whole } = await twoLeaders();
    const { code, stderr } = await run(...argv);
    expect(code).toBe(64);
    expect(stderr).toContain('election "x" has 2 seats: say which one is meant, such as --seat 1');
    const beyond = await run(...argv, '--seat', '3');
    expect(beyond.code).toBe(64);
    expect(beyond.stderr).toContain('--seat 3: election "x" has 2 seats');
    const looks = await Promise.all([1, 2].map((seat) => whole.inspect({ seat })));
    expect(looks.map(({ request }) => request)).toEqual([undefined, undefined]);
  },
);

test('history, vacate and transfer concern the seat that is named', async () => {
  const { run, whole } = await twoLeaders();
  const history = await run('history', '--json', '--seat', '2');
  expect(jsonLines(history.stdout)).toMatchObject([{ id: 'b' }]);
  const refused = await run('transfer', '--to', 'a', '--seat', '2');
  expect(refused.stderr).toContain('"a" leads seat 1: a candidate has one seat at most');
  const { code, stdout } = await run('vacate', '--seat', '2', '--json');
  expect(code).toBe(0);
  expect(jsonLines(stdout)).toMatchObject([
    { election: 'x', seat: 2, changed: true, before: { leader: { id: 'b' } } },
  ]);
  expect((await whole.inspect({ seat: 1 })).request).toBeUndefined();
});

test('drain, end and reopen concern all seats', async () => {
  const { run, whole } = await twoLeaders();
  expect((await run('drain', '--id', 'host-9', '--until', '1h')).code).toBe(1);
  expect((await run('drain', '--id', 'b', '--until', '1h')).code).toBe(0);
  for (const seat of [1, 2]) {
    expect((await whole.inspect({ seat })).drains).toMatchObject([{ id: 'b' }]);
  }
  expect((await run('end')).code).toBe(0);
  expect((await whole.leaders()).map(({ state }) => state)).toEqual(['ended', 'ended']);
  expect((await run('init', '--reopen')).code).toBe(0);
  expect((await whole.leaders()).map(({ state }) => state)).not.toContain('ended');
});

test('drain and end with --force concern all seats too', async () => {
  const { run, whole } = await twoLeaders();
  const seats = [1, 2];
  expect((await run('drain', '--id', 'host-9', '--until', '1h', '--force')).code).toBe(0);
  const looks = await Promise.all(seats.map((seat) => whole.inspect({ seat })));
  expect(looks.map(({ drains }) => drains.map(({ id }) => id))).toEqual([['host-9'], ['host-9']]);
  expect((await run('end', '--force')).code).toBe(0);
  expect((await whole.leaders()).map(({ state }) => state)).toEqual(['ended', 'ended']);
});

test('a seat can be asked by its own name as well', async () => {
  const { backend } = await twoLeaders();
  const { stdout } = await invoke(['status', '-e', 'x.seat-2', '--json'], { backend });
  expect(jsonLines(stdout)).toMatchObject([{ election: 'x.seat-2', leader: { id: 'b' } }]);
});

test('watch shows the seat that is named', async () => {
  const { backend } = await twoLeaders();
  const running = new Running(['watch', '-e', 'x', '--seat', '2', '--json'], { backend });
  await running.printed(/"led"/);
  running.signal('SIGINT');
  const { stdout } = await running.result;
  expect(jsonLines(stdout)).toMatchObject([{ election: 'x', seat: 2, leader: { id: 'b' } }]);
});

test('an election that nobody has led has no seat 2 yet, and one leader means one seat', async () => {
  const { code, stderr } = await invoke(['vacate', '-e', 'y', '--seat', '2']);
  expect(code).toBe(64);
  expect(stderr).toContain('--seat 2: nobody has led election "y" yet');
  expect((await invoke(['status', '-e', 'y', '--seat', '1'])).code).toBe(0);
});
