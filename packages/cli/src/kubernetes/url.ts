/** `k8s://` URLs: a namespace, and which cluster where that is not clear. */
import type { OpenStore } from '../context.ts';
import { refuser } from '../url/parts.ts';
import type { Parameter } from '../url/query.ts';
import { readQuery } from '../url/query.ts';
import { flag, quote, word } from '../url/values.ts';

/** The parts of a `k8s:` URL. */
export interface KubernetesLocation {
  /** Undefined: that of the pod's service account, or of the context. */
  readonly namespace: string | undefined;
  /** A context of the kubeconfig; undefined: the current one. */
  readonly context: string | undefined;
  /** Its path, as it was written; undefined: KUBECONFIG, or ~/.kube/config. */
  readonly kubeconfig: string | undefined;
  /** Undefined: in a pod, unless a kubeconfig or context is named. */
  readonly inCluster: boolean | undefined;
  /** In its plain form. */
  readonly url: string;
  readonly origin: OpenStore['origin'];
}

const form = 'k8s://namespace or k8s://namespace?context=NAME';

const table = {
  context: { read: word },
  kubeconfig: { read: word },
  'in-cluster': { read: flag },
} satisfies Readonly<Record<string, Parameter<unknown>>>;

export const kubernetesParameters: readonly string[] = Object.keys(table);

/** @throws CommandError that names the part that cannot be used */
export function parseKubernetesUrl(
  text: string,
  origin: '--store' | 'INCUMBENT_STORE',
): KubernetesLocation {
  const refuse = refuser('Kubernetes', origin, form);
  const [, rest] = /^k8s:\/\/(.*)$/is.exec(text) ?? [];
  if (rest === undefined) return refuse('has no "//" behind its scheme');
  if (rest.includes('#')) refuse('has a "#": in a value write %23');
  const mark = rest.indexOf('?');
  const place = (mark === -1 ? rest : rest.slice(0, mark)).replace(/\/$/, '');
  if (/[@:]/.test(place)) {
    refuse(
      'has a user or a port: servers and credentials come from the service account of the pod or ' +
        'from a kubeconfig',
    );
  }
  if (place !== '' && !/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(place)) {
    refuse(
      `has ${quote(place)} for a namespace, which has at most 63 of a to z, 0 to 9 and "-", and "-" ` +
        'at neither end',
    );
  }
  const { values, shown } = readQuery(table, mark === -1 ? '' : rest.slice(mark + 1), refuse);
  const [context, kubeconfig] = [values.context?.[0], values.kubeconfig?.[0]];
  const inCluster = values['in-cluster']?.[0];
  const other = context === undefined ? 'kubeconfig' : 'context';
  if (inCluster === true && (context ?? kubeconfig) !== undefined) {
    refuse(`has in-cluster=true and ${other}, which is of a kubeconfig: leave one of them out`);
  }
  return {
    namespace: place === '' ? undefined : place,
    context,
    kubeconfig,
    inCluster,
    url: `k8s://${place}${shown === '' ? '' : `?${shown}`}`,
    origin,
  };
}
