import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach } from 'vitest';

/** @returns a function that subscribes to a diagnostics channel until the end of the test */
export function subscribeInEach(): (name: string, listener: (message: unknown) => void) => void {
  const ends: (() => void)[] = [];
  afterEach(() => {
    for (const end of ends.splice(0)) end();
  });
  return (name, listener) => {
    subscribe(name, listener);
    ends.push(() => unsubscribe(name, listener));
  };
}
