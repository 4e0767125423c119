/** A listing of S3 below a prefix with objects that may not be read. */
import { expect, test } from 'vitest';
import { s3 } from '../src/backends/s3/index.ts';

class Command {
  readonly input: { readonly Key?: string };
  readonly middlewareStack = { add() {} };

  constructor(input: object) {
    this.input = input;
  }
}
class ListCommand extends Command {}

const foreign = JSON.stringify({ not: 'ours' });

/** A bucket with these objects, some of which answer with this error. */
function bucket(keys: readonly string[], failing: Readonly<Record<string, Error>>) {
  const client = {
    config: {},
    async send(command: Command) {
      if (command instanceof ListCommand) return { Contents: keys.map((Key) => ({ Key })) };
      const { Key = '' } = command.input;
      if (failing[Key] !== undefined) throw failing[Key];
      return { ETag: '"1"', Body: { transformToString: async () => foreign } };
    },
  };
  const commands = {
    GetObjectCommand: Command,
    PutObjectCommand: Command,
    ListObjectsV2Command: ListCommand,
  };
  return s3(client as never, { bucket: 'b', prefix: 'p/', commands: commands as never });
}

const answer = (name: string, status: number) =>
  Object.assign(new Error('said so'), { name, $metadata: { httpStatusCode: status } });

test('an object that may not be read is an election that is unknown, and the rest is listed', async () => {
  const keys = await keysOf('fine', 'kms', 'ssec', 'archived');
  const [, kms, ssec, archived] = keys as [string, string, string, string];
  const backend = bucket(keys, {
    [kms]: answer('AccessDenied', 403),
    [ssec]: answer('InvalidRequest', 400),
    [archived]: answer('InvalidObjectState', 403),
  });
  const states: unknown[] = [];
  for await (const { name, view } of backend.survey()) states.push([name, view.state]);
  expect(states).toEqual(['kms', 'ssec', 'archived'].map((name) => [name, 'unknown']));
});

test('a store that is away for one object ends the listing with an error', async () => {
  const keys = await keysOf('fine', 'slow');
  const backend = bucket(keys, { [String(keys[1])]: answer('SlowDown', 503) });
  const listing = (async () => {
    for await (const _ of backend.elections());
  })();
  await expect(listing).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});

async function keysOf(...names: readonly string[]): Promise<string[]> {
  const { checkOptions } = await import('../src/backends/s3/options.ts');
  const commands = { GetObjectCommand: Command, PutObjectCommand: Command };
  const { keyOf } = checkOptions({ bucket: 'b', prefix: 'p/', commands: commands as never });
  return names.map((name) => keyOf(name));
}
