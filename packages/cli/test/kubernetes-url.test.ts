import { expect, test } from 'vitest';
import { kubernetesParameters, parseKubernetesUrl } from '../src/kubernetes/url.ts';
import { refusal } from './support/refusal.ts';

const parse = (url: string) => parseKubernetesUrl(url, 'INCUMBENT_STORE');

test('a namespace, and which cluster', () => {
  expect(parse('k8s://ops')).toEqual({
    namespace: 'ops',
    context: undefined,
    kubeconfig: undefined,
    inCluster: undefined,
    url: 'k8s://ops',
    origin: 'INCUMBENT_STORE',
  });
  expect(parse('K8S://')).toMatchObject({ namespace: undefined, url: 'k8s://' });
  expect(parse('k8s://ops/')).toMatchObject({ namespace: 'ops', url: 'k8s://ops' });
  const url = 'k8s://ops?context=prod%26eu&kubeconfig=/etc/kube%20config&in-cluster=false';
  expect(parse(url)).toMatchObject({
    namespace: 'ops',
    context: 'prod&eu',
    kubeconfig: '/etc/kube config',
    inCluster: false,
  });
  expect(parse(parse(url).url)).toEqual(parse(url));
  // None of them was left out above.
  for (const name of kubernetesParameters) expect(url).toContain(`${name}=`);
});

test.each([
  ['k8s:ops', 'has no "//" behind its scheme'],
  ['k8s://Ops', 'has "Ops" for a namespace, which has at most 63 of a to z, 0 to 9 and "-"'],
  ['k8s://-a', 'has "-a" for a namespace'],
  ['k8s://ops/nightly', 'has "ops/nightly" for a namespace'],
  [`k8s://${'a'.repeat(64)}`, 'for a namespace, which has at most 63'],
  ['k8s://ops#x', 'has a "#": in a value write %23'],
  ['k8s://ops?namespace=x', 'has the unknown parameter "namespace"; there are context, kubeconfig'],
  ['k8s://ops?context=', 'has no value for the parameter context'],
  ['k8s://ops?in-cluster=1', 'has the parameter in-cluster, which is true or false, not "1"'],
  [
    'k8s://ops?in-cluster=true&context=x',
    'has in-cluster=true and context, which is of a kubeconfig',
  ],
  ['k8s://ops?in-cluster=true&kubeconfig=/x', 'has in-cluster=true and kubeconfig'],
])('%s is refused: %s', (url, words) => {
  const error = refusal(() => parse(url));
  expect(error).toMatchObject({ code: 'BAD_STORE_URL', exitCode: 64 });
  expect(error.message).toContain('the Kubernetes URL of INCUMBENT_STORE ');
  expect(error.message).toContain(words);
  expect(error.message).toContain('one looks like k8s://namespace');
});

test('a token or a server does not belong there, and is not repeated', () => {
  for (const url of ['k8s://s3cret@ops', 'k8s://joe:s3cret@api:6443']) {
    const { message } = refusal(() => parse(url));
    expect(message).toContain('has a user or a port');
    expect(message).not.toContain('s3cret');
  }
});
