/** Findings about our rights on an API server, as far as elections depend on them. */
import type { Timing } from 'incumbent';
import { formatDuration } from 'incumbent';
import type { ApiResponse } from 'incumbent/kubernetes';
import { kubernetes } from 'incumbent/kubernetes';
import type { Examination } from '../context.ts';
import type { KubernetesConnection } from '../kubernetes/connect.ts';
import type { Finding } from './finding.ts';
import type { Scratch, Unmeasured } from './scratch.ts';
import { serverClockFinding } from './server-clock.ts';

const group = 'coordination.k8s.io';
/** The verbs that elections use on Leases; `watch` only saves polling. */
const needed = ['get', 'create', 'update', 'watch'] as const;
/** Where a Lease cannot be removed again, it is always the same. */
const fixedName = 'incumbent-doctor';

export async function examineKubernetes(
  connection: KubernetesConnection,
  { timing, signal, election }: Examination,
): Promise<readonly Finding[]> {
  const { api, namespace, identity, version } = connection;
  const rights = await rightsOn(election, connection, signal);
  return [
    {
      check: 'server',
      level: 'ok',
      message: `${api.url}, ${version === undefined ? 'version not told' : `Kubernetes ${version}`}, by ${identity}`,
      data: { server: api.url, version: version ?? null },
    },
    rightsFinding(namespace, rights),
    takeoverFinding(timing),
  ];
}

/** The election to measure on. */
export async function scratchOnKubernetes(
  unique: string,
  connection: KubernetesConnection,
  signal: AbortSignal,
): Promise<Scratch | Unmeasured> {
  const { api, namespace } = connection;
  const rights = await rightsOn(unique, connection, signal);
  if (needed.some((verb) => verb !== 'watch' && rights.get(verb) === false)) {
    // As with a Role for certain elections alone.
    return { unmeasured: 'we may not make a Lease of our own', mayLook: true };
  }
  const leases = `/apis/${group}/v1/namespaces/${namespace}/leases`;
  const backend = kubernetes(api, { namespace });
  if ((await mayWe(connection, 'delete', unique, signal)) !== true) {
    return { name: fixedName, backend, look: async () => [noClock('no right to delete one')] };
  }
  const remove = (name: string, until: AbortSignal) =>
    api.request({ method: 'DELETE', path: `${leases}/${name}`, signal: until });
  return {
    name: unique,
    backend,
    async look(_election, until) {
      const probe = `${unique}-clock`;
      let failure: string | undefined;
      const ask = async () => {
        const made = await api.request({
          method: 'POST',
          path: leases,
          body: { apiVersion: `${group}/v1`, kind: 'Lease', metadata: { name: probe } },
          signal: until,
        });
        await remove(probe, until);
        const time = Date.parse(creationTimeOf(made) ?? '');
        if (Number.isNaN(time)) failure = `the answer was ${made.status}`;
        return time;
      };
      const finding = await serverClockFinding(
        ask,
        'no election depends on it, only the times that people and Go controllers read',
        1_000,
      );
      return [failure === undefined ? finding : noClock(failure)];
    },
    async remove(until) {
      await remove(unique, until);
    },
  };
}

/** Our rights on one Lease, or on any. */
async function rightsOn(
  name: string | undefined,
  connection: KubernetesConnection,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, boolean | undefined>> {
  return new Map(
    await Promise.all(
      needed.map(async (verb) => [verb, await mayWe(connection, verb, name, signal)] as const),
    ),
  );
}

/** @returns undefined: that cannot be told */
async function mayWe(
  { api, namespace }: KubernetesConnection,
  verb: string,
  name: string | undefined,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  // RBAC cannot limit `create` to names.
  const which = name === undefined || verb === 'create' ? {} : { name };
  const { status, body } = await api.request({
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { namespace, verb, group, resource: 'leases', ...which } },
    },
    signal,
  });
  const review = body as { readonly status?: { readonly allowed?: unknown } } | undefined;
  const allowed = review?.status?.allowed;
  return status < 300 && typeof allowed === 'boolean' ? allowed : undefined;
}

export function rightsFinding(
  namespace: string,
  rights: ReadonlyMap<string, boolean | undefined>,
): Finding {
  const missing = [...rights].filter(([, allowed]) => allowed === false).map(([verb]) => verb);
  const unknown = [...rights].filter(([, allowed]) => allowed === undefined);
  const data = { namespace, missing };
  const where = `leases of the namespace "${namespace}"`;
  const wayOut = `\`incumbent schema kubernetes --namespace ${namespace}\` prints the Role that it takes`;
  if (missing.some((verb) => verb !== 'watch')) {
    const message = `we may not ${missing.join(', ')} ${where}: ${wayOut}`;
    return { check: 'rights', level: 'broken', message, data };
  }
  if (missing.length > 0) {
    const message = `we may not watch ${where}, so that changes are found by polling: ${wayOut}`;
    return { check: 'rights', level: 'warn', message, data };
  }
  if (unknown.length > 0) {
    return {
      check: 'rights',
      level: 'note',
      message: `not known for ${where}: the server does not say what we may do`,
      data,
    };
  }
  const message = `we may ${[...rights.keys()].join(', ')} ${where}`;
  return { check: 'rights', level: 'ok', message, data };
}

function takeoverFinding({ leaseMs }: Timing): Finding {
  return {
    check: 'takeover',
    level: 'note',
    message:
      `after a crash somebody leads within ${formatDuration(leaseMs)} of the last renewal, and who comes ` +
      'later waits as long from when it came: the times in a Lease are those of its holder',
    data: { leaseMs },
  };
}

function creationTimeOf({ body }: ApiResponse): string | undefined {
  const made = body as { readonly metadata?: { readonly creationTimestamp?: string } } | undefined;
  return made?.metadata?.creationTimestamp;
}

function noClock(why: string): Finding {
  return {
    check: 'clock',
    level: 'note',
    message: `not known: it is told only by a Lease that is made (${why}); no election depends on it`,
  };
}
