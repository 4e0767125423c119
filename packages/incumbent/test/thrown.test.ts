/** Errors of users may have no text. */
import { expect, test } from 'vitest';
import { asError, textOf } from '../src/base/thrown.ts';
import { describeNotElected, NotElectedError } from '../src/index.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import { candidate } from './support/scripted-candidate.ts';
import { ScriptedStore } from './support/scripted-store.ts';

const withoutText: readonly (readonly [string, unknown])[] = [
  ['an object without a prototype', Object.create(null)],
  [
    'a toString that throws',
    {
      toString() {
        throw new Error('no text');
      },
    },
  ],
  ['an error whose message is a symbol', Object.assign(new Error(), { message: Symbol('x') })],
  [
    'a proxy that refuses all',
    new Proxy(
      {},
      {
        get() {
          throw new Error('no');
        },
        getPrototypeOf() {
          throw new Error('no');
        },
      },
    ),
  ],
];

test.each(withoutText)('%s is told of', (_, thrown) => {
  const text = 'a value without a text was thrown';
  expect(textOf(thrown)).toBe(text);
  expect(asError(thrown)).toBeInstanceOf(Error);
  expect(describeNotElected({ kind: 'unhealthy', error: thrown })).toBe(
    `the health check fails: ${text}`,
  );
});

test('a health check that throws such a value does not make a wait endless', async () => {
  const clock = new SimulatedClock();
  const election = candidate(new ScriptedStore(), clock);
  const check = async () => {
    throw Object.create(null);
  };
  let outcome: unknown;
  election.campaign({ wait: '1s', health: { check } }).catch((error: unknown) => {
    outcome = error;
  });
  await clock.advance(5_000);
  expect(outcome).toBeInstanceOf(NotElectedError);
  await election.close();
});
