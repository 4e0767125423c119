/** A process that calls the leader: by gRPC's resolver, by undici's dispatcher, and by an address. */
import * as grpc from '@grpc/grpc-js';
import type { CandidateInfo, Election } from 'incumbent';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { registerLeaderResolver } from 'incumbent/grpc';
import { toLeader } from 'incumbent/http';
import type { Dispatcher } from 'undici';
import { Agent, request } from 'undici';
import { serve } from '../../calls/serve.ts';
import { monotonicMs } from '../../clock.ts';
import { calls } from '../call.ts';
import type { CallerName, FollowerMethods, Ports, Served, Transport } from '../messages.ts';

type Call = () => Promise<Served>;

/** When each term was seen by an observer beside the callers, by its token and its leader. */
const observed = new Map<string, { readonly atMs: number; readonly incarnation: string }>();
/** When a caller asked first for the address of a leader. */
const resolved = new Map<string, number>();
const followers = new Map<string, Call>();
const fixed = new Map<string, Call>();

const retrying = JSON.stringify({
  methodConfig: [
    {
      name: [{}],
      retryPolicy: {
        maxAttempts: 5,
        initialBackoff: '0.02s',
        maxBackoff: '1s',
        backoffMultiplier: 3,
        retryableStatusCodes: ['UNAVAILABLE'],
      },
    },
  ],
});
const callMs = 30_000;

serve<FollowerMethods>({
  async open({ directory, election: name, leaseMs }) {
    const election = createElection({ name, backend: file(directory), lease: leaseMs });
    void observe(election);
    registerLeaderResolver(grpc, {
      elections: election,
      addressesOf: (leader) => [addressOf('grpc', leader)],
    });
    const target = `incumbent:///${name}`;
    followers.set('grpc following', grpcCall(target, 'led', { 'grpc.enable_retries': 0 }));
    followers.set('grpc retrying', grpcCall(target, 'led', { 'grpc.service_config': retrying }));
    const interceptor = toLeader(election, { addressOf: (leader) => addressOf('http', leader) });
    const agent = new Agent({ connections: 1 }).compose(interceptor);
    followers.set('http following', httpCall('http://leader/led', agent));
    return null;
  },
  async follow({ transport, caller, above }) {
    const call = callerOf(transport, caller);
    for (;;) {
      const answer = await call().catch(() => undefined);
      const token = answer?.token ?? undefined;
      if (answer === undefined || token === undefined || BigInt(token) <= BigInt(above)) {
        await new Promise((resolve) => setImmediate(resolve));
        continue;
      }
      while (!observed.has(token)) await new Promise((resolve) => setImmediate(resolve));
      const { atMs: observedMs = 0, incarnation = '' } = observed.get(token) ?? {};
      const resolvedMs = resolved.get(`${transport} ${incarnation}`) ?? Number.NaN;
      return { token, servedMs: answer.servedMs, observedMs, resolvedMs };
    }
  },
  async calls({ transport, caller, ports, times }) {
    const call = caller === 'static' ? fixedCall(transport, ports) : callerOf(transport, caller);
    return { ms: await timed(times, call) };
  },
  async connections({ transport, ports, times }) {
    const ms: number[] = [];
    for (let i = 0; i < times; i += 1) {
      const { call, close } = newCall(transport, ports);
      ms.push(...(await timed(1, call)));
      close();
    }
    return { ms };
  },
});

function callerOf(transport: Transport, caller: CallerName): Call {
  const call = followers.get(`${transport} ${caller}`);
  if (call === undefined) throw new Error(`there is no ${transport} ${caller}`);
  return call;
}

function addressOf(transport: Transport, { addresses, incarnation }: CandidateInfo): string {
  const key = `${transport} ${incarnation}`;
  if (!resolved.has(key)) resolved.set(key, monotonicMs());
  const isHttp = (address: string): boolean => address.startsWith('http:');
  return addresses.find((address) => isHttp(address) === (transport === 'http')) ?? '';
}

async function observe(election: Election): Promise<void> {
  for await (const { state, token, leader } of election.observe()) {
    if (state !== 'led' || token === undefined || leader === undefined) continue;
    observed.set(String(token), { atMs: monotonicMs(), incarnation: leader.incarnation });
  }
}

/** Calls on a connection that is kept, at a method that anybody serves. */
function fixedCall(transport: Transport, ports: Ports): Call {
  const key = `${transport} ${ports[transport]}`;
  const call = fixed.get(key) ?? newCall(transport, ports).call;
  fixed.set(key, call);
  return call;
}

function newCall(
  transport: Transport,
  ports: Ports,
): { readonly call: Call; readonly close: () => void } {
  if (transport === 'http') {
    const agent = new Agent({ connections: 1 });
    const call = httpCall(`http://127.0.0.1:${ports.http}/open`, agent);
    return { call, close: () => void agent.destroy() };
  }
  const client = new grpc.Client(`127.0.0.1:${ports.grpc}`, grpc.credentials.createInsecure(), {
    'grpc.use_local_subchannel_pool': 1,
  });
  return { call: callOn(client, 'open'), close: () => client.close() };
}

function grpcCall(target: string, method: keyof typeof calls, options: grpc.ClientOptions): Call {
  return callOn(new grpc.Client(target, grpc.credentials.createInsecure(), options), method);
}

function callOn(client: grpc.Client, method: keyof typeof calls): Call {
  const { path, requestSerialize, responseDeserialize } = calls[method];
  return () =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        'anybody?',
        new grpc.Metadata({ waitForReady: true }),
        { deadline: Date.now() + callMs },
        (error, answer) => {
          if (error !== null || answer === undefined) reject(error ?? new Error('no answer'));
          else resolve(answer);
        },
      );
    });
}

function httpCall(url: string, dispatcher: Dispatcher): Call {
  return async () => {
    const { statusCode, body } = await request(url, { dispatcher });
    if (statusCode === 200) return (await body.json()) as Served;
    await body.dump();
    throw new Error(`status ${statusCode}`);
  };
}

async function timed(times: number, call: Call): Promise<number[]> {
  const samples: number[] = [];
  for (let i = 0; i < times; i += 1) {
    const startMs = monotonicMs();
    await call();
    samples.push(monotonicMs() - startMs);
  }
  return samples;
}
