import { readFile } from 'node:fs/promises';
import { freePorts } from '@incumbent/zookeeper-testing';
import { createElection } from 'incumbent';
import { apiServer, kubernetes } from 'incumbent/kubernetes';
import { expect, test } from 'vitest';
import { Copies } from './support/copies.ts';
import type { Rule } from './support/kube-proxy.ts';
import { KubeProxy } from './support/kube-proxy.ts';
import { leaderOf, oneLeadsAtATime } from './support/one-leads.ts';

const manifest = (name: string) =>
  readFile(new URL(`../kubernetes/${name}.yaml`, import.meta.url), 'utf8');

/** The rules of the Role: all their lists are written as in JSON. */
async function rules(): Promise<Rule[]> {
  const [, ...texts] = (await manifest('role')).split('- apiGroups:');
  return texts.map((text) =>
    Object.fromEntries(
      [...text.matchAll(/^ +(resources|resourceNames|verbs): (\[.*\])$/gm)].map(
        ([, field, list]) => [field, JSON.parse(list as string)],
      ),
    ),
  );
}

test('with the rights of its Role one copy reconciles, another goes on when it is gone', async () => {
  await using proxy = await KubeProxy.start(await rules());
  await using copies = await Copies.of('kubernetes/controller', {
    API_URL: proxy.url,
    PORT: '0',
    LEASE: '1s',
    EVERY_MS: '50',
  });
  const api = apiServer({ url: proxy.url });
  await using election = createElection({
    name: 'checksum-controller',
    backend: kubernetes(api),
  });
  let round = 0;
  await oneLeadsAtATime({
    copies,
    leader: () => leaderOf(election),
    async tokens() {
      // There is always something to do.
      round += 1;
      proxy.apply('settings', { round: `${round}` });
      return proxy.written.map(({ metadata }) =>
        Number(metadata.annotations?.['incumbent.dev/token']),
      );
    },
  });
});

test('the probe of a copy that is well is answered', async () => {
  await using proxy = await KubeProxy.start(await rules());
  const [port] = await freePorts(1);
  await using copies = await Copies.of('kubernetes/controller', {
    API_URL: proxy.url,
    PORT: `${port}`,
  });
  await copies.start();
  await copies.until('it answers', async () => {
    const response = await fetch(`http://127.0.0.1:${port}/healthz`);
    return response.status === 200 && (await response.text()) === 'ok\n';
  });
  expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);
  const deployment = await manifest('deployment');
  expect(deployment).toContain('examples/dist/kubernetes/controller.js');
  expect(deployment).toContain('httpGet: { path: /healthz, port: http }');
});
