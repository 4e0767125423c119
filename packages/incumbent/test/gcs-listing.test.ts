/** A listing of Cloud Storage with objects that may not be read. */
import { expect, test } from 'vitest';
import { gcs } from '../src/backends/gcs/index.ts';

/** A bucket whose objects refuse to be read with these statuses. */
function bucket(failing: Readonly<Record<string, number>>) {
  const ofBucket = {
    getFiles: async () => [Object.keys(failing).map((name) => ({ name })), undefined],
    file: (name: string) => ({
      metadata: {},
      requestStream() {
        throw Object.assign(new Error('said so'), { code: failing[name] });
      },
    }),
  };
  return gcs({ bucket: () => ofBucket } as never, { bucket: 'elections' });
}

test('an object that may not be read is an election that is unknown, and the listing goes on', async () => {
  const states: unknown[] = [];
  for await (const { name, view } of bucket({ a: 403, b: 400 }).survey()) {
    states.push([name, view.state]);
  }
  expect(states).toEqual([
    ['a', 'unknown'],
    ['b', 'unknown'],
  ]);
});

test('a store that is away for one object ends the listing with an error', async () => {
  const listing = (async () => {
    for await (const _ of bucket({ a: 403, b: 503 }).elections());
  })();
  await expect(listing).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});
