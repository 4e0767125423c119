import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect } from 'vitest';
import type { ClientOptions } from '../../src/index.ts';
import { ConnectError, connect } from '../../src/index.ts';
import { TestClock } from '../../test/hostile-reading/clock.ts';
import { refusal, until } from './waiting.ts';

/**
 * The error of `connect` when its time is up. That is when its first attempt has failed, however
 * long the machine takes for that.
 * @param url whose first host is an address
 */
export async function refusedConnect(
  url: string,
  options: ClientOptions = {},
): Promise<ConnectError> {
  const clock = new TestClock();
  let client: number | undefined;
  let hasFailed = false;
  // The first attempt begins within the call.
  const onAttempt = (message: unknown) => {
    client ??= (message as { client: number }).client;
  };
  const onEnd = (message: unknown) => {
    hasFailed ||= (message as { client: number }).client === client;
  };
  subscribe('incumbent:zookeeper:attempt', onAttempt);
  subscribe('incumbent:zookeeper:disconnected', onEnd);
  const error = refusal(connect(url, { ...options, clock, connectTimeoutMs: 1_500 }));
  unsubscribe('incumbent:zookeeper:attempt', onAttempt);
  await until('an attempt fails', () => hasFailed);
  unsubscribe('incumbent:zookeeper:disconnected', onEnd);
  // All at once, because the next attempt would never end.
  clock.stall(1_500);
  clock.runDueAtOnce();
  expect(await error).toBeInstanceOf(ConnectError);
  return (await error) as ConnectError;
}
