import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { loadSdk } from '../src/gcs/sdk.ts';
import { gcsParameters, parseGcsUrl } from '../src/gcs/url.ts';
import { refusal } from './support/refusal.ts';

const parse = (url: string) => parseGcsUrl(url, 'INCUMBENT_STORE');

test('a bucket, a folder, and how it is reached', () => {
  expect(parse('gs://ops')).toEqual({
    bucket: 'ops',
    prefix: '',
    endpoint: undefined,
    project: undefined,
    keyFile: undefined,
    options: {},
    url: 'gs://ops/',
    origin: 'INCUMBENT_STORE',
  });
  expect(parse('GS://ops/')).toMatchObject({ prefix: '', url: 'gs://ops/' });
  for (const url of ['gs://ops/a%20b/c', 'gs://ops/a%20b/c/']) {
    expect(parse(url)).toMatchObject({ prefix: 'a b/c/', url: 'gs://ops/a%20b/c/' });
  }
  const url =
    'gs://ops/x?endpoint=http://localhost:4443/&project=p-1&age=on&clock-step=5s' +
    '&max-clock-skew=10s&writes-per-second=5';
  expect(parse(url)).toMatchObject({
    endpoint: 'http://localhost:4443',
    project: 'p-1',
    options: { age: 'on', clockStep: '5s', maxClockSkew: '10s', maxWritesPerSecond: 5 },
  });
  expect(parse(parse(url).url)).toEqual(parse(url));
  expect(parse('gs://ops?key-file=/a/b.json').keyFile).toBe('/a/b.json');
  // None of them was left out above.
  for (const name of gcsParameters) expect(`${url}&key-file=`).toContain(`${name}=`);
});

test.each([
  ['gs:ops', 'has no "//" behind its scheme'],
  ['gs://', 'has no bucket'],
  ['gs:///x', 'has no bucket'],
  ['gs://Ops', 'has "Ops" for a bucket'],
  ['gs://ops/%2', 'write %25 for "%"'],
  ['gs://ops#x', 'has a "#"'],
  ['gs://ops?prefix=x', 'has the unknown parameter "prefix"; there are endpoint, project'],
  ['gs://ops?endpoint=host:9000', 'is a URL such as http://localhost:4443, not "host:9000"'],
  ['gs://ops?endpoint=http://h?x', 'has a "?" or "#" in it'],
  ['gs://ops?endpoint=http://h&key-file=x', 'a stand-in is asked without credentials'],
  ['gs://ops?age=off&clock-step=1s', 'clock-step, which means nothing with age=off'],
  ['gs://ops?writes-per-second=0', 'is a whole number from 1 to 1000'],
])('%s is refused: %s', (url, words) => {
  const error = refusal(() => parse(url));
  expect(error).toMatchObject({ code: 'BAD_STORE_URL', exitCode: 64 });
  expect(error.message).toContain('the Cloud Storage URL of INCUMBENT_STORE ');
  expect(error.message).toContain(words);
  expect(error.message).toContain('one looks like gs://bucket/folder');
});

test('a secret does not belong there, and is not repeated', () => {
  for (const url of ['gs://me:s3cret@ops', 'gs://ops?endpoint=http://me:s3cret@h']) {
    expect(refusal(() => parse(url)).message).not.toContain('s3cret');
  }
});

test('Google’s client is that of the working directory, else that beside the command, else installed', () => {
  const nowhere = mkdtempSync(join(tmpdir(), 'incumbent-gcs-'));
  onTestFinished(() => rmSync(nowhere, { recursive: true }));
  expect(loadSdk(import.meta.dirname).Storage).toBeTypeOf('function');
  expect(loadSdk(nowhere).Storage).toBeTypeOf('function');
  const beside = pathToFileURL(join(nowhere, 'sdk.js')).href;
  const { message, code } = refusal(() => loadSdk(nowhere, beside));
  expect(code).toBe('DRIVER_MISSING');
  expect(message).toContain('npm install @google-cloud/storage');
});
