import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from '../harness/time.ts';
import type { ClientTells, Served } from './messages.ts';
import type { OpenWay } from './ways/way.ts';

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** So that elections are put to the test, and not the processors. */
const pauseMs = 1;
/** After a failure: those would be thousands. */
const failedPauseMs = 10;

/**
 * One call after the other until `signal` aborts.
 * @returns what was served under each token
 */
export async function callEndlessly(
  way: OpenWay,
  client: string,
  tell: (told: ClientTells) => unknown,
  signal: AbortSignal,
): Promise<readonly Served[]> {
  const served = new Map<string, Mutable<Served>>();
  let highest = 0n;
  for (let number = 1; !signal.aborted; number += 1) {
    const startMs = monotonicMs();
    try {
      const answer = await way.call({ number });
      const present = served.get(answer.token);
      if (present !== undefined) present.calls += 1;
      else {
        const { name } = way;
        const firstMs = monotonicMs();
        served.set(answer.token, { client, way: name, token: answer.token, calls: 1, firstMs });
      }
      const token = BigInt(answer.token);
      if (answer.number !== number) {
        tell({
          say: 'trouble',
          text: `own answers: ${way.name}: ${number} was answered with ${answer.number}`,
        });
      }
      // It began after the one before it had been answered.
      if (token < highest) {
        const text = `no step back: ${way.name}: an answer of term ${token} after one of term ${highest}`;
        tell({ say: 'trouble', text });
      } else highest = token;
      await sleep(pauseMs);
    } catch (error) {
      const why = describe(error);
      const failure = { client, way: way.name, startMs, endMs: monotonicMs(), why };
      tell({ say: 'failed', failure });
      await sleep(failedPauseMs);
    }
  }
  return [...served.values()];
}

function describe(error: unknown): string {
  const words: string[] = [];
  for (let cause = error; cause instanceof Error && words.length < 3; cause = cause.cause) {
    words.push(cause.message === '' ? cause.name : cause.message);
  }
  return words.join(': ') || String(error);
}
