import { channel } from 'node:diagnostics_channel';
import { StoreUnavailableError } from 'incumbent';
import { afterEach, expect, test } from 'vitest';
import { describe as describeError, EventLog } from '../src/run/events.ts';

let log: EventLog | undefined;
afterEach(() => log?.close());

/** The output of an event log, line by line. */
function follow(
  options: { json?: true },
  programActs = true,
  ...words: [goesOn?: string]
): string[] {
  const lines: string[] = [];
  const output = { write: (text: string) => lines.push(text.trimEnd()) };
  log = new EventLog(output, options, { election: 'work', candidate: 'A' });
  log.follow(() => programActs, false, ...words);
  return lines;
}

function publish(name: string, payload: object, election = 'work'): void {
  channel(`incumbent:${name}`).publish({ election, candidate: 'A', ...payload });
}

function noSpace(file: string): Error {
  const cause = Object.assign(new Error(`ENOSPC: no space left, write '${file}'`), {
    code: 'ENOSPC',
  });
  return new StoreUnavailableError(`the file store cannot be used: ${cause.message}`, { cause });
}

test('the same trouble is said once, whatever file it names, and again after something else', () => {
  const lines = follow({});
  publish('trouble', { what: 'releasing', error: noSpace('/s/.tmp-1') });
  publish('trouble', { what: 'releasing', error: noSpace('/s/.tmp-2') });
  publish('trouble', { what: 'campaigning', error: noSpace('/s/.tmp-3') });
  publish('waiting-for', { why: { kind: 'led', id: 'B', token: 3n } });
  publish('trouble', { what: 'campaigning', error: noSpace('/s/.tmp-4') });
  const saying = (what: string, file: string) =>
    `incumbent: ${what}: the file store cannot be used: ENOSPC: no space left, write '${file}'`;
  expect(lines).toEqual([
    saying('releasing', '/s/.tmp-1'),
    saying('campaigning', '/s/.tmp-3'),
    'incumbent: waiting for the seat: "B" leads with token 3',
    saying('campaigning', '/s/.tmp-4'),
  ]);
});

test('other trouble of the same kind of error is another trouble', () => {
  const lines = follow({});
  publish('trouble', { what: 'onBelief', error: new Error('one') });
  publish('trouble', { what: 'onBelief', error: new Error('two') });
  expect(lines).toEqual(['incumbent: onBelief: one', 'incumbent: onBelief: two']);
});

test.each([true, false])(
  'an overrun is one only if the program can still act: %s',
  (programActs) => {
    const lines = follow({}, programActs);
    publish('overrun', { token: 1n, reason: 'stalled' });
    expect(lines).toHaveLength(programActs ? 1 : 0);
  },
);

test('an overrun is told in the words of the command', () => {
  const lines = follow({}, true, 'the service is not certainly standby yet');
  publish('overrun', { token: 1n, reason: 'stalled' });
  expect(lines).toEqual([
    'incumbent: term 1 is over (stalled) and the service is not certainly standby yet',
  ]);
});

test('events of other elections of this process are not ours', () => {
  const lines = follow({});
  publish('leading', { token: 1n }, 'other');
  expect(lines).toEqual([]);
});

test('nothing is said after close', async () => {
  const lines = follow({});
  await log?.close();
  publish('leading', { token: 1n });
  expect(lines).toEqual([]);
});

test('as JSON: one object a line, tokens as strings, whatever an error says', () => {
  const lines = follow({ json: true });
  publish('leading', { token: 2n ** 70n });
  publish('ended', {
    token: 3n,
    reason: 'work-failed',
    released: false,
    error: new Error('\n\u202e'),
  });
  publish('won', { token: 4n, unfenced: ['B'] });
  // There is no leader to fence, so no event comes before "leading".
  publish('won', { token: 5n, unfenced: [] });
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ event: 'leading', token: '1180591620717411303424' }),
    expect.objectContaining({ event: 'ended', token: '3', released: false, error: '\n\u202e' }),
    expect.objectContaining({ event: 'taking-over', token: '4', unfenced: ['B'] }),
  ]);
  expect(lines.join('')).not.toContain('\u202e');
});

test('for people: nothing that moves a cursor', () => {
  const lines = follow({});
  publish('unconfirmed', { token: 1n, remainingMs: -5, error: new Error('\u001b[2J\n') });
  expect(lines).toEqual([
    'incumbent: the term could not be confirmed (\\x1b[2J\\n), 0ms of belief left',
  ]);
});

test('an error is told with its cause, unless it says that already', () => {
  const cause = new Error('EIO: read', { cause: new Error('disk') });
  expect(describeError(new Error('no record', { cause }))).toBe('no record: EIO: read: disk');
  expect(describeError(new Error('no record: EIO: read: disk', { cause }))).toBe(
    'no record: EIO: read: disk',
  );
  expect(describeError('text')).toBe('text');
  expect(describeError(undefined)).toBe('no answer');
});

test('where there are several seats, events of a term say which one', () => {
  const lines: string[] = [];
  const output = { write: (text: string) => lines.push(text) };
  const source = { election: 'work', candidate: 'A', hasSeats: true };
  log = new EventLog(output, { json: true }, source);
  log.follow(() => true);
  publish('waiting-for', { why: { kind: 'led', id: 'B', seats: 2 } });
  publish('won', { token: 5n, seat: 2, unfenced: [] });
  publish('leading', { token: 5n, seat: 2 });
  log.emit({ event: 'started', fields: { token: 5n, pid: 1 } });
  expect(lines.map((line) => JSON.parse(line).seat)).toEqual([undefined, 2, 2]);
});

test('without --seats, events say nothing of seats', () => {
  const lines = follow({ json: true });
  publish('won', { token: 5n, seat: 1, unfenced: [] });
  publish('leading', { token: 5n, seat: 1 });
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { time: expect.any(String), event: 'leading', election: 'work', candidate: 'A', token: '5' },
  ]);
});
