/**
 * Requests about Leases, one after the other, for a real API server and for the stand-in.
 * capture-kubernetes.mjs writes down what the real one said.
 *
 * `$x.uid` and `$x.resourceVersion` in a body or a query stand for those of the Lease that the answer to
 * the step `x` has shown.
 */

const merge = 'application/merge-patch+json';
const spec = { holderIdentity: 'a', leaseDurationSeconds: 15 };
const lease = (name, more = {}, metadata = {}) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name, ...metadata },
  spec: { ...spec, ...more },
});
const get = (path) => ({ method: 'GET', path });
const post = (body, more = {}) => ({ method: 'POST', path: '', body, ...more });
const put = (path, body, more = {}) => ({ method: 'PUT', path, body, ...more });
const patch = (path, body, type = merge) => ({ method: 'PATCH', path, body, type });
const remove = (path, body) => ({ method: 'DELETE', path, body });
const at = (version) => ({ uid: '$gone.uid', resourceVersion: version });
const long = 'x'.repeat(256 * 1024);

/** @type {Readonly<Record<string, object>>} */
export const requests = {
  'get, absent': get('/x'),
  'list, empty': get(''),
  create: post(lease('x')),
  'create, once more': post(lease('x')),
  'create without a name': post(lease(undefined)),
  'create with a name to generate': post(lease(undefined, {}, { generateName: 'generated-' })),
  'create with a resourceVersion': post(lease('rv', {}, { resourceVersion: '1' })),
  'create with a resourceVersion that is none': post(lease('rv', {}, { resourceVersion: 'one' })),
  'create with a uid': post(lease('uid', {}, { uid: '11111111-1111-1111-1111-111111111111' })),
  'create in another namespace than the URL': post(lease('ns', {}, { namespace: 'other' })),
  'create in a namespace that is not there': post(lease('ns'), { namespace: 'nowhere' }),
  'create in a namespace that is not there, which the body names': post(
    lease('ns', {}, { namespace: 'nowhere' }),
    { namespace: 'nowhere' },
  ),
  'create with capital letters': post(lease('Upper')),
  'create with a slash': post(lease('a/b')),
  'create with a long name': post(lease('x'.repeat(254))),
  'create another kind': post({ ...lease('kind'), kind: 'ConfigMap' }),
  'create another version': post({ ...lease('kind'), apiVersion: 'coordination.k8s.io/v9' }),
  'create another group': post({ ...lease('kind'), apiVersion: 'v1' }),
  'create without a kind': post({ metadata: { name: 'bare' }, spec }),
  'create without a spec': post({ metadata: { name: 'no-spec' } }),
  'create nothing': { method: 'POST', path: '' },
  'create a list': { method: 'POST', path: '', text: '[1]' },
  'create what is no JSON': { method: 'POST', path: '', text: '{"kind":' },
  'create as text': post(lease('text'), { type: 'text/plain' }),
  'create as YAML': {
    ...{ method: 'POST', path: '', type: 'application/yaml' },
    text: 'metadata: {name: yaml}',
  },
  'create by its name in the URL': { method: 'POST', path: '/x', body: lease('x') },
  'create with whole seconds': post(lease('y', { renewTime: '2026-01-01T00:00:00Z' })),
  'create with milliseconds': post(lease('y', { renewTime: '2026-01-01T00:00:00.123Z' })),
  'create with microseconds elsewhere': post(
    lease('times', { renewTime: '2026-01-01T02:00:00.000001+02:00', acquireTime: null }),
  ),
  'create with no duration': post(lease('y', { leaseDurationSeconds: 0 })),
  'create with a long duration': post(lease('y', { leaseDurationSeconds: 2 ** 31 })),
  'create with half a second': post(lease('y', { leaseDurationSeconds: 0.5 })),
  'create with a duration in words': post(lease('y', { leaseDurationSeconds: '15' })),
  'create with negative transitions': post(lease('y', { leaseTransitions: -1 })),
  'create with a holder that is a number': post(lease('y', { holderIdentity: 5 })),
  'create with an empty holder': post(lease('empty', { holderIdentity: '' })),
  'create with an unknown field': post(lease('unknown', { future: 1 })),
  'create with an annotation that is no string': post(lease('y', {}, { annotations: { a: 1 } })),
  'create with long annotations': post(lease('y', {}, { annotations: { long } })),
  'create with a key that is none': post(lease('y', {}, { annotations: { 'a b': 'x' } })),
  'create with labels that are none': post(lease('y', {}, { labels: { a: 'x y' } })),
  'create with an owner that is none': post(lease('y', {}, { ownerReferences: [{ name: 'z' }] })),
  'list, some': get(''),
  'list by name': get('?fieldSelector=metadata.name%3Dx'),
  'list by an unknown field': get('?fieldSelector=spec.holderIdentity%3Da'),
  'list in a namespace that is not there': { ...get(''), namespace: 'nowhere' },
  'get, present': get('/x'),
  'get in a namespace that is not there': { ...get('/x'), namespace: 'nowhere' },
  'get what the server does not know': { method: 'GET', url: '/apis/coordination.k8s.io/v9' },
  'replace without a resourceVersion': put('/x', lease('x', { holderIdentity: 'b' })),
  'replace with another resourceVersion': put('/x', lease('x', {}, { resourceVersion: '1' })),
  'replace with a resourceVersion that is none': put(
    '/x',
    lease('x', {}, { resourceVersion: 'one' }),
  ),
  'replace with another uid': put(
    '/x',
    lease(
      'x',
      {},
      {
        uid: '11111111-1111-1111-1111-111111111111',
        resourceVersion: '$create.resourceVersion',
      },
    ),
  ),
  'replace under another name': put(
    '/x',
    lease('z', {}, { resourceVersion: '$create.resourceVersion' }),
  ),
  'replace without a name': put(
    '/x',
    lease(undefined, {}, { resourceVersion: '$create.resourceVersion' }),
  ),
  'replace in another namespace': put(
    '/x',
    lease('x', {}, { namespace: 'other', resourceVersion: '$create.resourceVersion' }),
  ),
  'replace with an invalid spec': put(
    '/x',
    lease('x', { leaseDurationSeconds: -1 }, { resourceVersion: '$create.resourceVersion' }),
  ),
  'replace by the same': put('/x', lease('x', {}, { resourceVersion: '$create.resourceVersion' })),
  replace: put(
    '/x',
    lease('x', { holderIdentity: 'b' }, { resourceVersion: '$create.resourceVersion' }),
  ),
  'replace, once more': put(
    '/x',
    lease('x', { holderIdentity: 'b' }, { resourceVersion: '$create.resourceVersion' }),
  ),
  'replace the collection': put('', lease('x')),
  'patch, merging': patch('/x', {
    metadata: { labels: { a: '1' } },
    spec: { leaseTransitions: 4 },
  }),
  'patch, merging in the way of Kubernetes': patch(
    '/x',
    { metadata: { labels: { b: '2' } } },
    'application/strategic-merge-patch+json',
  ),
  'patch, by operations': patch(
    '/x',
    [{ op: 'replace', path: '/spec/holderIdentity', value: 'c' }],
    'application/json-patch+json',
  ),
  'patch, as JSON': patch('/x', { spec: {} }, 'application/json'),
  'patch with another resourceVersion': patch('/x', { metadata: { resourceVersion: '1' } }),
  'patch with another uid': patch('/x', {
    metadata: { uid: '11111111-1111-1111-1111-111111111111' },
  }),
  'patch by nothing': patch('/x', {}),
  'patch what is not there': patch('/none', { spec: {} }),
  'patch to what is invalid': patch('/x', { spec: { leaseDurationSeconds: 0 } }),
  'delete what is not there': remove('/none'),
  'delete with another resourceVersion': remove('/x', { preconditions: { resourceVersion: '1' } }),
  'delete with another uid': remove('/x', {
    preconditions: { uid: '11111111-1111-1111-1111-111111111111' },
  }),
  'create what will be deleted': post(lease('gone')),
  gone: get('/gone'),
  delete: remove('/gone', { preconditions: { uid: '$gone.uid' } }),
  'delete, once more': remove('/gone'),
  'replace what was deleted': put('/gone', lease('gone', {}, at('$gone.resourceVersion'))),
  'replace what was deleted, by its uid alone': put(
    '/gone',
    lease('gone', {}, { uid: '$gone.uid' }),
  ),
  'replace what was deleted, by its resourceVersion alone': put(
    '/gone',
    lease('gone', {}, { resourceVersion: '$gone.resourceVersion' }),
  ),
  'replace what was made again, as the one before': put(
    '/gone',
    lease('gone', {}, at('$gone.resourceVersion')),
  ),
  'make by replacing, with nothing': put('/made', lease('made')),
  'make by replacing, under another name': put('/made-2', lease('other-name')),
  'make by replacing, invalid': put('/made-3', lease('made-3', { leaseDurationSeconds: 0 })),
  'make by replacing, in a namespace that is not there': put('/made', lease('made'), {
    namespace: 'nowhere',
  }),
  'watch from what was forgotten': get('?watch=1&resourceVersion=1&timeoutSeconds=1'),
  'watch from what is no resourceVersion': get('?watch=1&resourceVersion=one&timeoutSeconds=1'),
  'watch from what has not been': get('?watch=1&resourceVersion=99999999&timeoutSeconds=1'),
  'watch from the beginning': get(
    '?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Dx&timeoutSeconds=1',
  ),
  'list from what has not been': get('?resourceVersion=99999999&timeoutSeconds=1'),
  'delete all': remove(''),
  'list, none': get(''),
};
