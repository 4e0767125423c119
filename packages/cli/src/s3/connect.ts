/** Our client of S3, or of another server that speaks its protocol. */
import { Agent } from 'node:https';
import type { S3Commands } from 'incumbent/s3';
import { s3 } from 'incumbent/s3';
import type { StoreNeeds } from '../context.ts';
import { UnusableStoreError } from '../unusable.ts';
import { codeOf, isNetworkError, reach, reasonOf, unreachable } from '../url/reach.ts';
import type { Machine } from '../url/secrets.ts';
import { readText } from '../url/secrets.ts';
import { missingProfile } from './profile.ts';
import type { Sdk, SdkClient } from './sdk.ts';
import { loadSdk, makeClient } from './sdk.ts';
import type { S3Location } from './url.ts';

export interface S3Connection {
  readonly client: SdkClient;
  readonly commands: S3Commands;
  readonly sdk: Sdk;
  readonly location: S3Location;
  close(): Promise<void>;
}

/** @throws CommandError, UnusableStoreError that names endpoint and reason */
export async function connectS3(
  location: S3Location,
  needs: StoreNeeds,
  machine: Machine,
): Promise<S3Connection> {
  const sdk = loadSdk(machine.cwd);
  const client = makeClient(sdk, await configOf(location, machine));
  const { GetObjectCommand, PutObjectCommand, ListObjectsV2Command } = sdk;
  const { limits = {} } = s3(client, { bucket: location.bucket, commands: sdk });
  const known = { url: location.url, origin: location.origin, limits };
  const attempt = async () => {
    // Any answer will do here: the library says whether it suits elections.
    const Key = `${location.prefix}.incumbent-probe`;
    const command = new GetObjectCommand({ Bucket: location.bucket, Key });
    await client
      .send(command as never, { abortSignal: needs.signal })
      .then(discard)
      .catch((error: unknown) => {
        if (statusOf(error) === undefined) throw error;
      });
  };
  try {
    await reach(needs, attempt, isNetworkError);
  } catch (error) {
    client.destroy();
    needs.signal.throwIfAborted();
    const problem = await problemOf(error, location, machine);
    if (problem !== undefined)
      throw new UnusableStoreError('AUTH_FAILED', problem, known, { cause: error });
    throw unreachable(nameOf(location), error, needs, known, hintOf(location, error));
  }
  return {
    client,
    commands: {
      ...{ GetObjectCommand, PutObjectCommand },
      ...(ListObjectsV2Command === undefined ? {} : { ListObjectsV2Command }),
    },
    sdk,
    location,
    close: async () => client.destroy(),
  };
}

async function configOf(
  location: S3Location,
  machine: Machine,
): Promise<Readonly<Record<string, unknown>>> {
  const { endpoint, profile, pathStyle, fewChecksums, tlsCa, origin } = location;
  const region = regionOf(location, machine.env);
  const ca =
    tlsCa === undefined ? undefined : await readText(tlsCa, machine.cwd, `tls-ca of ${origin}`);
  return {
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    ...(profile === undefined ? {} : { profile }),
    ...(pathStyle ? { forcePathStyle: true } : {}),
    ...(fewChecksums
      ? { requestChecksumCalculation: 'WHEN_REQUIRED', responseChecksumValidation: 'WHEN_REQUIRED' }
      : {}),
    ...(ca === undefined
      ? {}
      : { requestHandler: { httpsAgent: new Agent({ ca, keepAlive: true, maxSockets: 50 }) } }),
  };
}

/** @returns undefined: the SDK finds one itself, or says that it does not */
export function regionOf(
  { region, endpoint, profile }: S3Location,
  env: Machine['env'],
): string | undefined {
  if (region !== undefined) return region;
  if (env['AWS_REGION']) return undefined;
  // Other tools of AWS take this one, the SDK does not.
  if (env['AWS_DEFAULT_REGION']) return env['AWS_DEFAULT_REGION'];
  if (profile !== undefined || env['AWS_PROFILE']) return undefined;
  // A signature needs some region; which one does not matter.
  return endpoint === undefined ? undefined : 'us-east-1';
}

/** Reads the body to its end. Otherwise the connection could not be used again. */
async function discard(output: unknown): Promise<void> {
  const { Body } = output as { readonly Body?: { transformToString(): Promise<string> } };
  await Body?.transformToString();
}

/** Undefined: there was no answer. */
export function statusOf(error: unknown): number | undefined {
  const { $metadata } = error as { readonly $metadata?: { readonly httpStatusCode?: number } };
  return $metadata?.httpStatusCode;
}

/** Finds out which setting is missing; undefined: the error has another cause. */
async function problemOf(
  error: unknown,
  location: S3Location,
  machine: Machine,
): Promise<string | undefined> {
  const said = reasonOf(error);
  const name = error instanceof Error ? error.name : '';
  const lacksRegion = /region is missing/i.test(said);
  const lacksCredentials = name === 'CredentialsProviderError' || name === 'TokenProviderError';
  if (lacksRegion || lacksCredentials) {
    const missing = await missingProfile(location, machine);
    if (missing !== undefined) return missing;
  }
  if (lacksRegion) {
    return `S3 wants to know its region (${said}): set AWS_REGION, or add region=NAME`;
  }
  if (lacksCredentials) {
    return (
      `the AWS SDK finds no credentials (${said}): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ` +
      'add profile=NAME'
    );
  }
  return undefined;
}

/** Another possible cause of the failed connection. */
export function hintOf({ endpoint, pathStyle }: S3Location, error: unknown): string {
  const code = codeOf(error);
  if (/CERT|ALTNAME|SELF_SIGNED|UNABLE_TO_/.test(code)) return '; tls-ca names whom to trust';
  if (code === 'EPROTO') return '; an endpoint that speaks no TLS there wants endpoint=http://…';
  if (/ENOTFOUND/.test(code) && endpoint !== undefined && !pathStyle) {
    return '; where the bucket is not in the host name, path-style=true';
  }
  return '';
}

export function nameOf({ endpoint, bucket }: S3Location): string {
  return `the S3 bucket ${bucket}${endpoint === undefined ? '' : ` at ${endpoint}`}`;
}
