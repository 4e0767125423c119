/** A process with one client of an object store, which leads elections on it, or follows them. */
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { Storage } from '@google-cloud/storage';
import { ownerCredentials } from '@incumbent/servers';
import type { Backend, Election, Term } from 'incumbent';
import { createElection } from 'incumbent';
import { gcs } from 'incumbent/gcs';
import { s3 } from 'incumbent/s3';
import { serve } from '../../calls/serve.ts';
import { monotonicMs } from '../../clock.ts';
import type { ObjectStore, ObjectUserMethods } from '../messages.ts';
import { userAgentOf } from '../user-agent.ts';

/** Of the stand-ins. */
const bucket = 'elections';

interface Client {
  readonly backend: Backend;
  /** Reads an object as the client alone does it. */
  get(name: string): Promise<unknown>;
}

let client: Client | undefined;
let lease: { readonly lease?: number } = {};
const terms: Term[] = [];
const elections: Election[] = [];

serve<ObjectUserMethods>({
  async open({ store, url, who, leaseMs }) {
    client = makers[store](url, userAgentOf(who));
    lease = leaseMs === null ? {} : { lease: leaseMs };
    return { leaseMs: open('timing').timing.leaseMs };
  },
  async lead({ prefix, count }) {
    const led = namesOf(prefix, count).map((name) => open(name).campaign());
    terms.push(...(await Promise.all(led)));
    return null;
  },
  async observe({ prefix, count }) {
    await Promise.all(
      namesOf(prefix, count).map(async (name) => {
        const views = open(name).observe();
        for (;;) {
          const { value } = await views.next();
          if (value?.state === 'led') break;
        }
        // It goes on observing.
        void drain(views);
      }),
    );
    return null;
  },
  standing: () => ({ leading: terms.filter((term) => term.isLeading()).length }),
  async looks({ prefix, times }) {
    const [name = ''] = namesOf(prefix, 1);
    const election = open(name);
    const lookMs: number[] = [];
    const getMs: number[] = [];
    for (let i = 0; i < times; i += 1) {
      lookMs.push(await timed(() => election.leader()));
      getMs.push(await timed(() => client?.get(name)));
    }
    return { lookMs, getMs };
  },
});

function open(name: string): Election {
  if (client === undefined) throw new Error('it has no client yet');
  const election = createElection({ name, backend: client.backend, ...lease });
  elections.push(election);
  return election;
}

async function drain(views: AsyncIterator<unknown>): Promise<void> {
  while (!(await views.next()).done);
}

async function timed(job: () => Promise<unknown> | undefined): Promise<number> {
  const startMs = monotonicMs();
  await job();
  return monotonicMs() - startMs;
}

function namesOf(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

const makers: Readonly<Record<ObjectStore, (url: string, userAgent: string) => Client>> = {
  s3(url, userAgent) {
    const sdk = new S3Client({
      endpoint: url,
      region: 'us-east-1',
      forcePathStyle: true,
      credentials: ownerCredentials,
      customUserAgent: userAgent,
    });
    return {
      backend: s3(sdk, { bucket, commands: { GetObjectCommand, PutObjectCommand } }),
      async get(name) {
        const { Body } = await sdk.send(new GetObjectCommand({ Bucket: bucket, Key: name }));
        return Body?.transformToByteArray();
      },
    };
  },
  gcs(url, userAgent) {
    const storage = new Storage({ apiEndpoint: url, projectId: 'bench', userAgent });
    return {
      backend: gcs(storage, { bucket }),
      get: (name) => storage.bucket(bucket).file(name).download(),
    };
  },
};
