/** The process of a candidate that is written in JavaScript. Its argument names it. */

import { serve } from '../../calls/serve.ts';
import { monotonicMs } from '../../clock.ts';
import type { Candidate, Led, OpenCandidate } from '../candidates/candidate.ts';
import type { CandidateMethods, PeerName } from '../messages.ts';

const load: Readonly<Partial<Record<PeerName, () => Promise<OpenCandidate>>>> = {
  ours: async () => (await import('../candidates/ours.ts')).ours(),
  'ours, predecessorWait off': async () =>
    (await import('../candidates/ours.ts')).ours({ predecessorWait: 'off' }),
  'bare socket with a check': async () => (await import('../candidates/bare.ts')).bare(true),
  'bare socket': async () => (await import('../candidates/bare.ts')).bare(false),
  'node-zookeeper-client': async () =>
    (await import('../candidates/node-zookeeper-client.ts')).open,
  'zookeeper (C client)': async () => (await import('../candidates/c-client.ts')).open,
};

let candidate: Candidate | undefined;
let led: Led | undefined;

serve<CandidateMethods>({
  async open({ port, sessionTimeoutMs }) {
    const open = await load[process.argv[2] as PeerName]?.();
    candidate = await open?.(port, sessionTimeoutMs);
    return null;
  },
  async campaign({ election }) {
    led = await candidate?.campaign(election);
    const atMs = monotonicMs();
    return { atMs, token: led?.token ?? null };
  },
  async resign() {
    const atMs = monotonicMs();
    await led?.resign();
    return { atMs };
  },
});
