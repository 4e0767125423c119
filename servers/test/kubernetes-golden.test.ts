/** The stand-in beside what a real API server (kube-apiserver 1.20.2) answered to the same requests. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { adminToken, FakeApiServer } from '../src/index.ts';
// @ts-expect-error: it also runs beside a real server, without a build
import { ask } from './golden/kubernetes-ask.mjs';

interface Answer {
  readonly status: number;
  readonly objects: readonly {
    readonly reason?: string;
    readonly type?: string;
    readonly spec?: unknown;
    readonly items?: readonly unknown[];
  }[];
}
type Answers = Readonly<Record<string, Answer>>;

/**
 * No client of Leases asks for these, so the stand-in does not play them. Each entry must be
 * needed.
 */
const unlike: readonly string[] = [
  'create with a name to generate',
  // A real server refuses with 500 and without a reason, ours with one.
  'create with a resourceVersion',
  'create with a resourceVersion that is none',
  // Bodies that are no Lease in JSON.
  'create nothing',
  'create a list',
  'create what is no JSON',
  'create as text',
  'create as YAML',
  'create by its name in the URL',
  'create with a key that is none',
  'create with labels that are none',
  'create with an owner that is none',
  'list by an unknown field',
  'replace with a resourceVersion that is none',
  'replace the collection',
  // The second of these two shows what the first one has done.
  'patch, by operations',
  'patch with another uid',
  'patch by nothing',
  'watch from what was forgotten',
  'watch from what is no resourceVersion',
  'list from what has not been',
  'delete all',
];

/** Without the words: those are for people. */
function meaning({ status, objects }: Answer) {
  const seen = objects.map(({ reason, type, spec }) => ({ reason, type, spec }));
  return { status, seen };
}

test('the stand-in answers as a real API server', async () => {
  const file = new URL('golden/kubernetes.json', import.meta.url);
  const { answers: real } = JSON.parse(readFileSync(file, 'utf8')) as { readonly answers: Answers };
  const server = await FakeApiServer.start({ plain: true });
  try {
    const ours = (await ask(server.url, adminToken)) as Answers;
    expect(Object.keys(ours)).toEqual(Object.keys(real));
    const differing = Object.keys(real).filter(
      (name) => JSON.stringify(meaning(real[name]!)) !== JSON.stringify(meaning(ours[name]!)),
    );
    expect(differing).toEqual(unlike);
  } finally {
    await server.close();
  }
});
