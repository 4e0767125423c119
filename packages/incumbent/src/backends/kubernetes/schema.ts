/** The rights that an account needs in the cluster, and a check for them. */
import { describeValue } from '../../base/candidate.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { apiOf } from './api-of.ts';
import type { KubeConfigLike, KubernetesApi } from './client.ts';
import type { Verb } from './errors.ts';
import { Refusals } from './errors.ts';
import { checkNamespace, leaseNameOf } from './options.ts';

/** The options of `schema`. */
export interface SchemaOptions {
  /** The namespace of the Leases. Default `default`. */
  readonly namespace?: string;
  /** The name of the ServiceAccount, the Role and the RoleBinding. Default `incumbent`. */
  readonly serviceAccount?: string;
  /**
   * The names of the elections. With them the Role is for these Leases alone. Default: all Leases.
   */
  readonly elections?: readonly string[];
}

const purposes: Readonly<Record<Verb, string>> = {
  get: 'to see who leads',
  create: 'to hold an election for the first time',
  update: 'to win, to confirm and to give back',
  watch: 'to be told of changes; without it everybody polls',
};

/**
 * A ServiceAccount, a Role and a RoleBinding as YAML, for `kubectl apply -f -`.
 * @throws InvalidOptionError
 */
export function schema(options: SchemaOptions = {}): string {
  const namespace = checkNamespace(options.namespace ?? 'default');
  const name = leaseNameOf(options.serviceAccount ?? 'incumbent', {});
  const leases = namesOf(options.elections);
  const rule = (verbs: readonly Verb[], names: readonly string[] | undefined) =>
    [
      '  - apiGroups: ["coordination.k8s.io"]',
      '    resources: ["leases"]',
      ...(names === undefined ? [] : [`    resourceNames: ${JSON.stringify(names)}`]),
      ...['    verbs:', ...verbs.map((verb) => `      - ${verb} # ${purposes[verb]}`)],
    ].join('\n');
  const rules =
    leases === undefined
      ? rule(['get', 'create', 'update', 'watch'], undefined)
      : // A rule that names objects cannot allow create.
        [rule(['get', 'update', 'watch'], leases), rule(['create'], undefined)].join('\n');
  return `apiVersion: v1
kind: ServiceAccount
metadata:
  name: ${name}
  namespace: ${namespace}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: ${name}
  namespace: ${namespace}
rules:
${rules}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: ${name}
  namespace: ${namespace}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: ${name}
subjects:
  - kind: ServiceAccount
    name: ${name}
    namespace: ${namespace}
`;
}

/** The options of `missingRights`. */
export interface MissingRightsOptions {
  /** The namespace of the Leases. Default: that of the client, or `default`. */
  readonly namespace?: string;
  /** The Lease to ask about. Default: any. */
  readonly leaseName?: string;
  readonly signal?: AbortSignal;
}

/**
 * Asks the API server which rights for elections the account lacks. Changes nothing.
 * @returns the missing verbs on Leases. Without `watch` elections work, and poll
 * @throws StoreUnavailableError, StoreUnsuitableError when the server cannot be asked
 */
export async function missingRights(
  client: KubernetesApi | KubeConfigLike,
  options: MissingRightsOptions = {},
): Promise<readonly Verb[]> {
  const api = apiOf(client);
  const namespace = checkNamespace(options.namespace ?? api.namespace ?? 'default');
  const { leaseName, signal } = options;
  const missing: Verb[] = [];
  for (const verb of Object.keys(purposes) as Verb[]) {
    const name = verb === 'create' || leaseName === undefined ? {} : { name: leaseName };
    const resource = { group: 'coordination.k8s.io', resource: 'leases' };
    const response = await api.request({
      method: 'POST',
      path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { namespace, verb, ...resource, ...name } },
      },
      ...(signal === undefined ? {} : { signal }),
    });
    const { status } = (response.body ?? {}) as { status?: { allowed?: unknown } };
    if (typeof status?.allowed !== 'boolean') {
      throw new Refusals(api.url, namespace).error(verb, response);
    }
    if (!status.allowed) missing.push(verb);
  }
  return missing;
}

function namesOf(elections: readonly string[] | undefined): readonly string[] | undefined {
  if (elections === undefined) return undefined;
  if (!Array.isArray(elections) || elections.length === 0) {
    throw new InvalidOptionError(
      `elections must be a list of one name or more, not ${describeValue(elections)}; leave it ` +
        'out for all of the namespace',
    );
  }
  return elections.map((election) => leaseNameOf(election, {}));
}
