import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { TestContext } from 'vitest';

/** The troubles in the background of an election, also while it is led, from now on. */
export function troubleErrors(
  election: string,
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
): readonly Error[] {
  const errors: Error[] = [];
  const listener = (event: unknown) => {
    const trouble = event as { readonly election: string; readonly error?: Error };
    if (trouble.election === election && trouble.error) errors.push(trouble.error);
  };
  for (const channel of ['incumbent:trouble', 'incumbent:unconfirmed']) {
    subscribe(channel, listener);
    onTestFinished(() => void unsubscribe(channel, listener));
  }
  return errors;
}
