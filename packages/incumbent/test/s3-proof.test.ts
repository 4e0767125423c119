/** The proof of an endpoint, step by step: actions of others come exactly in between. */
import { describe, expect, test } from 'vitest';
import { Refusals } from '../src/backends/s3/errors.ts';
import type { S3Commands } from '../src/backends/s3/index.ts';
import { Objects } from '../src/backends/s3/objects.ts';
import { ConditionProof, Proof } from '../src/backends/s3/proof.ts';
import { StoreUnavailableError, StoreUnsuitableError } from '../src/index.ts';

interface Input {
  readonly Key: string;
  readonly Body?: string;
  readonly IfMatch?: string;
  readonly IfNoneMatch?: string;
}

class Command {
  readonly input: Input;
  readonly middlewareStack = { add: () => {} };
  constructor(input: object) {
    this.input = input as Input;
  }
}

const commands: S3Commands = { GetObjectCommand: Command, PutObjectCommand: Command };

const refused = (httpStatusCode: number, name: string) =>
  Object.assign(new Error(name), { name, $metadata: { httpStatusCode } });

/** An endpoint with one object. Its ETags count up. */
class Endpoint {
  readonly calls: string[] = [];
  text: string | undefined;
  version = 0;
  form: 'quoted' | 'unquoted' | 'either' = 'either';
  constantTag = false;
  /** Actions of others before the call of that number. */
  before: Readonly<Record<number, () => void>> = {};

  /** Called between the write and its answer. */
  after: (calls: number) => void = () => {};

  readonly send = async (command: never): Promise<object> => {
    try {
      return this.#answer(command);
    } finally {
      this.after(this.calls.length);
    }
  };

  #answer(command: never): object {
    const { Body, IfMatch, IfNoneMatch } = (command as Command).input;
    this.before[this.calls.length + 1]?.();
    const condition = IfNoneMatch ?? (this.#isRight(IfMatch) ? '=' : '≠');
    this.calls.push(Body === undefined ? 'get' : condition);
    if (Body === undefined) {
      if (this.text === undefined) throw refused(404, 'NoSuchKey');
      const { text } = this;
      return { ETag: this.#tag, Body: { transformToString: async () => text } };
    }
    if (IfNoneMatch !== undefined && this.text !== undefined) throw refused(412, 'x');
    if (IfMatch !== undefined && (this.text === undefined || !this.#isRight(IfMatch))) {
      throw refused(412, 'x');
    }
    this.write(Body);
    return { ETag: this.#tag };
  }

  write(text: string): void {
    this.text = text;
    this.version += 1;
  }

  get #tag(): string {
    return this.constantTag ? '"same"' : `"v${this.version}"`;
  }

  #isRight(given: string | undefined): boolean {
    const isQuoted = given?.startsWith('"') === true;
    if (this.form === 'quoted' && !isQuoted) return false;
    if (this.form === 'unquoted' && isQuoted) return false;
    return given?.replaceAll('"', '') === this.#tag.replaceAll('"', '');
  }
}

let ids = 0;
const uniqueId = () => `id-${++ids}`;
const never = () => new AbortController().signal;

function prove(
  endpoint: Endpoint,
  forms: readonly ('quoted' | 'unquoted')[] = ['quoted', 'unquoted'],
): Promise<string> {
  const objects = new Objects(endpoint, 'b', commands, new Refusals('b'));
  return new ConditionProof(objects, 'probe', forms).run(uniqueId, never());
}

const byOthers = (form?: string) => JSON.stringify({ incumbent: 'probe', id: uniqueId(), form });

describe('an endpoint that honours conditions', () => {
  test('is proved by refusals and by accepted writes', async () => {
    const endpoint = new Endpoint();
    expect(await prove(endpoint)).toBe('quoted');
    expect(endpoint.calls).toEqual(['get', '*', '*', '≠', '=']);
    endpoint.calls.length = 0;
    expect(await prove(endpoint)).toBe('quoted');
    expect(endpoint.calls).toEqual(['get', '*', '≠', '=']);
  });

  test('and wants no quotes is asked without them', async () => {
    const endpoint = new Endpoint();
    endpoint.form = 'unquoted';
    endpoint.write('{}');
    expect(await prove(endpoint)).toBe('unquoted');
    expect(endpoint.calls).toEqual(['get', '*', '≠', '≠', 'get', '≠', '=']);
    await expect(prove(endpoint, ['quoted'])).rejects.toThrow(StoreUnsuitableError);
  });

  test('is proved by a write of others that came before ours', async () => {
    const endpoint = new Endpoint();
    endpoint.write('{}');
    endpoint.before = { 4: () => endpoint.write(byOthers('quoted')) };
    expect(await prove(endpoint)).toBe('quoted');
    expect(endpoint.calls).toEqual(['get', '*', '≠', '≠', 'get']);
  });

  test('and is proved by others in the other form must refuse the wrong ETag in that', async () => {
    const endpoint = new Endpoint();
    endpoint.form = 'unquoted';
    endpoint.write('{}');
    endpoint.before = { 4: () => endpoint.write(byOthers('unquoted')) };
    expect(await prove(endpoint)).toBe('unquoted');
    expect(endpoint.calls).toEqual(['get', '*', '≠', '≠', 'get', '≠']);
  });

  test('is not proved by an object that others have made: it is tried again', async () => {
    const endpoint = new Endpoint();
    endpoint.write('{}');
    endpoint.before = { 4: () => endpoint.write(byOthers()) };
    expect(await prove(endpoint)).toBe('quoted');
    expect(endpoint.calls).toEqual(['get', '*', '≠', '≠', 'get', '=']);
  });

  test('may lose the object meanwhile, once', async () => {
    const endpoint = new Endpoint();
    endpoint.write('{}');
    endpoint.before = {
      2: () => {
        endpoint.text = undefined;
      },
    };
    expect(await prove(endpoint)).toBe('quoted');
    expect(endpoint.calls).toEqual(['get', '*', '*', '≠', '=']);
  });

  test('but another object each time is tried again later', async () => {
    const endpoint = new Endpoint();
    endpoint.write('{}');
    endpoint.before = Object.fromEntries(
      Array.from({ length: 200 }, (_, i) => [i + 2, () => endpoint.write('{}')]),
    );
    await expect(prove(endpoint)).rejects.toThrow(StoreUnavailableError);
  });
});

test('a proof that is cut again and again gets on by one request each time', async () => {
  for (const form of ['either', 'unquoted'] as const) {
    const endpoint = new Endpoint();
    endpoint.form = form;
    const objects = new Objects(endpoint, 'b', commands, new Refusals('b'));
    const proof = new ConditionProof(objects, 'probe', ['quoted', 'unquoted']);
    let proved: string | undefined;
    for (let cuts = 0; proved === undefined && cuts < 20; cuts += 1) {
      const cut = new AbortController();
      // The answer to one request still comes, the next one is not sent any more.
      endpoint.after = () => cut.abort(new Error('too slow'));
      proved = await proof.run(uniqueId, cut.signal).catch(() => undefined);
    }
    expect(proved).toBe(form === 'either' ? 'quoted' : 'unquoted');
  }
});

test('a write of ours whose answer was lost shows as much', async () => {
  const endpoint = new Endpoint();
  endpoint.write('{}');
  const objects = new Objects(endpoint, 'b', commands, new Refusals('b'));
  const proof = new ConditionProof(objects, 'probe', ['quoted', 'unquoted']);
  endpoint.after = (calls) => {
    if (calls === 4) throw Object.assign(new Error('lost'), { code: 'ECONNRESET' });
  };
  await expect(proof.run(uniqueId, never())).rejects.toThrow('lost');
  expect(await proof.run(uniqueId, never())).toBe('quoted');
  expect(endpoint.calls).toEqual(['get', '*', '≠', '=', '≠', 'get']);
});

test('one ETag for everything is refused', async () => {
  const endpoint = new Endpoint();
  endpoint.constantTag = true;
  await expect(prove(endpoint)).rejects.toThrow('the same ETag');
});

test('no ETag at all is refused', async () => {
  const endpoint = { send: async () => ({ Body: { transformToString: async () => '{}' } }) };
  await expect(prove(endpoint as unknown as Endpoint)).rejects.toThrow('told no ETag');
});

describe('a proof', () => {
  test('is made once for all, and made again after a failure', async () => {
    let runs = 0;
    const proof = new Proof(async () => {
      runs += 1;
      if (runs === 1) throw new Error('not now');
      return 'quoted';
    });
    const results = await Promise.allSettled([1, 2, 3].map(() => proof.form(uniqueId, never())));
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
    expect(runs).toBe(2);
    await proof.form(uniqueId, never());
    expect(runs).toBe(2);
  });

  test('is not waited for by a candidate that is told to stop', async () => {
    const proof = new Proof(() => new Promise(() => {}));
    void proof.form(uniqueId, never());
    const stop = new AbortController();
    const waiting = proof.form(uniqueId, stop.signal);
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
  });
});
