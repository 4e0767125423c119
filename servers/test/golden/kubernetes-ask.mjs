import { requests } from './kubernetes-requests.mjs';

/** Asks a server all that there is to ask; what differs from run to run is left out of the answers. */
export async function ask(url, token) {
  const seen = new Map();
  const answers = {};
  for (const [name, request] of Object.entries(requests)) {
    answers[name] = await askOne(url, token, name, request, seen);
  }
  return answers;
}

async function askOne(url, token, name, request, seen) {
  const { method, namespace = 'default', path = '', body, type = 'application/json' } = request;
  const filled = (text) =>
    text.replace(/\$(\w+)\.(uid|resourceVersion)/g, (_, of, field) => seen.get(of)?.[field] ?? '?');
  const where =
    request.url ?? `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases${filled(path)}`;
  const sent = request.text ?? (body === undefined ? undefined : filled(JSON.stringify(body)));
  const response = await fetch(url + where, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(sent === undefined ? {} : { 'content-type': type }),
    },
    ...(sent === undefined ? {} : { body: sent }),
  });
  const text = await response.text();
  const objects = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => parsed(line));
  const [first] = objects;
  if (first?.kind === 'Lease') seen.set(name, first.metadata);
  return { status: response.status, objects: objects.map(plain) };
}

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return { text: line };
  }
}

const varying = [
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'managedFields',
  'generation',
  'selfLink',
];

/** Without what differs from run to run. */
function plain(value, key) {
  if (Array.isArray(value)) return value.map((one) => plain(one));
  if (typeof value === 'string') return plainText(value, key);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).filter(([name]) => !varying.includes(name));
  return Object.fromEntries(fields.map(([name, one]) => [name, plain(one, name)]));
}

function plainText(text, key) {
  if (key === 'annotations' || text.length > 2_000) return text.slice(0, 20);
  return text
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, (uid) =>
      /^1+$/.test(uid.replace(/-/g, '')) ? uid : 'UID',
    )
    .replace(/generated-\w+/g, 'generated-X');
}
