import { rm } from 'node:fs/promises';
import { makeServerDirectory } from '@incumbent/servers';
import { freePorts } from '@incumbent/zookeeper-testing';
import { expect, onTestFinished, test } from 'vitest';
import { Copies } from './support/copies.ts';

async function elections(): Promise<string> {
  const directory = await makeServerDirectory('elections');
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

/** The page that Prometheus gets. Empty while nothing listens. */
async function scrape(port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => undefined);
  return (await response?.text()) ?? '';
}

test('Prometheus sees which copy leads, that another one waits, and that it takes over', async () => {
  const ports = (await freePorts(2)) as [number, number];
  const shared = { ELECTIONS: await elections(), LEASE: '2s' };
  await using leaders = await Copies.of('monitoring/prometheus', {
    ...shared,
    PORT: `${ports[0]}`,
  });
  await using others = await Copies.of('monitoring/prometheus', { ...shared, PORT: `${ports[1]}` });
  const shows = (copies: Copies, port: number, line: string) =>
    copies.until(`${port} shows ${line}`, async () => (await scrape(port)).includes(`\n${line}\n`));
  const leader = await leaders.start();
  await shows(leaders, ports[0], 'incumbent_leading{election="orders"} 1');
  const other = await others.start();
  await shows(others, ports[1], 'incumbent_candidates_waiting{election="orders"} 1');
  expect(await scrape(ports[1])).toContain('\nincumbent_leading{election="orders"} 0\n');
  await leader.kill();
  await shows(others, ports[1], 'incumbent_token{election="orders"} 2');
  const takeover = 'incumbent_takeover_duration_seconds_count';
  expect(await scrape(ports[1])).toContain(
    `\n${takeover}{election="orders",predecessor="unclean"} 1\n`,
  );
  expect(await other.stop()).toBe('exit code 0');
});

test('OpenTelemetry exports the numbers and the spans of a term', async () => {
  await using copies = await Copies.of('monitoring/open-telemetry', {
    ELECTIONS: await elections(),
  });
  await copies.start();
  await copies.until('the metrics are exported', async () =>
    (await copies.output()).includes("'incumbent.handover.duration'"),
  );
  const output = await copies.output();
  for (const span of ['incumbent.campaign', 'incumbent.takeover', 'incumbent.handover']) {
    expect(output).toContain(`name: '${span}'`);
  }
  expect(output).toContain("name: 'incumbent.term.starts'");
});
