import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { hintOf, regionOf } from '../src/s3/connect.ts';
import { missingProfile } from '../src/s3/profile.ts';
import { loadSdk } from '../src/s3/sdk.ts';
import { parseS3Url, s3Parameters } from '../src/s3/url.ts';
import { refusal } from './support/refusal.ts';

const parse = (url: string) => parseS3Url(url, 'INCUMBENT_STORE');

test('a bucket, a folder, and which endpoint', () => {
  expect(parse('s3://ops')).toEqual({
    bucket: 'ops',
    prefix: '',
    endpoint: undefined,
    region: undefined,
    profile: undefined,
    pathStyle: false,
    fewChecksums: false,
    tlsCa: undefined,
    options: {},
    url: 's3://ops/',
    origin: 'INCUMBENT_STORE',
  });
  expect(parse('S3://ops/')).toMatchObject({ prefix: '', url: 's3://ops/' });
  for (const url of ['s3://ops/a%20b/c', 's3://ops/a%20b/c/']) {
    expect(parse(url)).toMatchObject({ prefix: 'a b/c/', url: 's3://ops/a%20b/c/' });
  }
  const url =
    's3://ops/x?endpoint=https://minio:9000/&region=eu-west-1&profile=ci&path-style=false' +
    '&checksums=required&tls-ca=ca.pem&etag-quotes=unquoted&age=on&clock-step=5s';
  expect(parse(url)).toMatchObject({
    endpoint: 'https://minio:9000',
    region: 'eu-west-1',
    profile: 'ci',
    pathStyle: false,
    fewChecksums: true,
    tlsCa: 'ca.pem',
    options: { etagQuotes: 'unquoted', age: 'on', clockStep: '5s' },
  });
  expect(parse(parse(url).url)).toEqual(parse(url));
  // None of them was left out above.
  for (const name of s3Parameters) expect(url).toContain(`${name}=`);
  // Of endpoints that are not AWS few have a host name for each bucket.
  expect(parse('s3://ops?endpoint=http://h').pathStyle).toBe(true);
});

test.each([
  ['s3:ops', 'has no "//" behind its scheme'],
  ['s3://', 'has no bucket'],
  ['s3:///x', 'has no bucket'],
  ['s3://a b', 'has "a b" for a bucket'],
  ['s3://ops/a/../b', 'has "a/../b" for a folder'],
  ['s3://ops/%2', 'write %25 for "%"'],
  ['s3://ops#x', 'has a "#"'],
  ['s3://ops?prefix=x', 'has the unknown parameter "prefix"; there are endpoint, region'],
  ['s3://ops?endpoint=host:9000', 'is a URL such as https://host:9000, not "host:9000"'],
  ['s3://ops?endpoint=ftp://h', 'is a URL such as https://host:9000'],
  ['s3://ops?endpoint=http://h?x', 'has a "?" or "#" in it'],
  ['s3://ops?endpoint=http://h&tls-ca=x', 'has the parameter tls-ca, which is for TLS'],
  ['s3://ops?age=off&clock-step=1s', 'clock-step, which means nothing with age=off'],
  ['s3://ops?etag-quotes=no', 'is auto, quoted, unquoted, not "no"'],
])('%s is refused: %s', (url, words) => {
  const error = refusal(() => parse(url));
  expect(error).toMatchObject({ code: 'BAD_STORE_URL', exitCode: 64 });
  expect(error.message).toContain('the S3 URL of INCUMBENT_STORE ');
  expect(error.message).toContain(words);
  expect(error.message).toContain('one looks like s3://bucket/folder');
});

test('a secret does not belong there, and is not repeated', () => {
  for (const url of [
    's3://AKIA:s3cret@ops',
    's3://ops?endpoint=http://AKIA:s3cret@h',
    's3://ops?endpoint=AKIA:s3cret@h',
  ]) {
    const { message } = refusal(() => parse(url));
    expect(message).not.toContain('s3cret');
  }
});

test.each([
  ['s3://ops?region=x&endpoint=http://h', { AWS_REGION: 'y' }, 'x'],
  // The SDK reads it itself.
  ['s3://ops?endpoint=http://h', { AWS_REGION: 'y', AWS_DEFAULT_REGION: 'z' }, undefined],
  ['s3://ops', { AWS_DEFAULT_REGION: 'z' }, 'z'],
  ['s3://ops?endpoint=http://h&profile=p', {}, undefined],
  ['s3://ops?endpoint=http://h', { AWS_PROFILE: 'p' }, undefined],
  ['s3://ops?endpoint=http://h', {}, 'us-east-1'],
  ['s3://ops', {}, undefined],
])('the region of %s with %j is %s', (url, env, region) => {
  expect(regionOf(parse(url), env)).toBe(region);
});

test('a host that is not found suggests path-style only where it is not in force', () => {
  const notFound = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' });
  expect(hintOf(parse('s3://ops?endpoint=https://h'), notFound)).toBe('');
  expect(hintOf(parse('s3://ops?endpoint=https://h&path-style=false'), notFound)).toContain(
    'path-style=true',
  );
});

test('a profile that is in no file is named with where it was looked for', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'incumbent-profile-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  const config = join(cwd, 'config');
  const credentials = join(cwd, 'credentials');
  writeFileSync(config, '[default]\nregion = x\n[profile ci]\nregion = y\n');
  writeFileSync(credentials, '[keys]\naws_access_key_id = z\n');
  const env = { AWS_CONFIG_FILE: config, AWS_SHARED_CREDENTIALS_FILE: credentials };
  for (const profile of ['ci', 'keys', 'default', undefined]) {
    expect(await missingProfile({ profile }, { env, cwd })).toBeUndefined();
  }
  expect(await missingProfile({ profile: 'nope' }, { env, cwd })).toContain(
    `there is no profile "nope" (profile=) in ${config} or ${credentials}`,
  );
  const said = await missingProfile(
    { profile: undefined },
    { env: { ...env, AWS_PROFILE: 'away' }, cwd },
  );
  expect(said).toContain('"away" (AWS_PROFILE)');
});

test('the SDK that is missing is named with how to install it', () => {
  const directory = mkdtempSync(join(tmpdir(), 'incumbent-no-sdk-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const beside = pathToFileURL(join(directory, 'sdk.js')).href;
  const error = refusal(() => loadSdk(directory, beside));
  expect(error).toMatchObject({ code: 'DRIVER_MISSING', exitCode: 64 });
  expect(error.message).toContain(`neither in ${directory} nor beside this command`);
  expect(error.message).toContain('npm install @aws-sdk/client-s3');
  expect(loadSdk(directory)).toHaveProperty('S3Client');
});
