/**
 * The alert file and /metrics, as Prometheus reads them. The rules run on series that are made up
 * here, by promtool. A real server has monitoring-server.test.ts.
 */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest';
import { isInstalled, promtoolMissing } from './support/prometheus.ts';
import { test } from './support/run-process.ts';

const repository = fileURLToPath(new URL('../../..', import.meta.url));
const hasPromtool = isInstalled('promtool');
const run = promisify(execFile);

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'incumbent-monitoring-'));
  execFileSync(process.execPath, [
    join(repository, 'scripts/monitoring.mjs'),
    ...['--to', directory],
  ]);
});

beforeEach(({ skip }) => skip(!hasPromtool, promtoolMissing));

afterAll(() => rmSync(directory, { recursive: true, force: true }));

// --- the rules, on series that are made up ---

interface Series {
  readonly series: string;
  readonly values: string;
}

const seconds = (s: number) => `${s}s`;

/** The gauges and counters of one process, scraped every ten seconds. */
function seriesOf(
  instance: string,
  values: Readonly<Record<string, string>>,
  election = 'jobs',
): Series[] {
  return Object.entries(values).map(([name, told]) => ({
    series: `incumbent_${name}{election="${election}",instance="${instance}"}`,
    values: told,
  }));
}

/** Alerts that must fire, by the second. At all others that are listed none does. */
type Expected = Readonly<Record<number, readonly string[]>>;

/** promtool plays the series, and asks which alerts fire at these times. */
async function play(name: string, series: readonly Series[], expected: Expected): Promise<void> {
  const file = join(directory, `${name.replaceAll(/\W/g, '-')}.json`);
  writeFileSync(
    file,
    JSON.stringify({
      rule_files: [join(directory, 'incumbent-alerts.yml')],
      evaluation_interval: seconds(5),
      tests: [
        {
          interval: seconds(10),
          input_series: series,
          promql_expr_test: Object.entries(expected).map(([at, alerts]) => ({
            expr: 'count by (alertname, election) (ALERTS{alertstate="firing"})',
            eval_time: seconds(Number(at)),
            exp_samples: alerts.map((alert) => ({
              labels: `{alertname="${alert}", election="jobs"}`,
              value: 1,
            })),
          })),
        },
      ],
    }),
  );
  const { stdout } = await run('promtool', ['test', 'rules', file]).catch((error: unknown) => {
    throw new Error((error as { stdout: string; stderr: string }).stdout);
  });
  expect(stdout).toContain('SUCCESS');
}

/** A process that leads `from` one scrape `to` another, with this token. */
function leader(instance: string, from: number, to: number, token: number, scrapes = 60): Series[] {
  const told = (value: number) =>
    [
      ...(from > 0 ? [`0x${from - 1}`] : []),
      `${value}x${to - from - 1}`,
      ...(to < scrapes ? [`0x${scrapes - to - 1}`] : []),
    ].join(' ');
  const waiting = [
    ...(from > 0 ? [`1x${from - 1}`] : []),
    `0x${to - from - 1}`,
    ...(to < scrapes ? [`1x${scrapes - to - 1}`] : []),
  ].join(' ');
  return seriesOf(instance, {
    leading: told(1),
    token: told(token),
    candidates_waiting: waiting,
    belief_remaining_seconds: told(10),
    belief_limit_seconds: told(12),
  });
}

/** One that is killed after so many scrapes. */
function killed(instance: string, scrapes: number, token: number): Series[] {
  return leader(instance, 0, scrapes, token, scrapes).map(({ series, values }) => ({
    series,
    values: `${values} stale`,
  }));
}

describe('the alerts', () => {
  test('promtool finds nothing to say of the file', async () => {
    const { stdout } = await run('promtool', [
      ...['check', 'rules', join(directory, 'incumbent-alerts.yml')],
    ]);
    expect(stdout).toContain('SUCCESS: 6 rules found');
  });

  test('every expression of the dashboard can be parsed', async () => {
    const text = readFileSync(join(directory, 'incumbent-dashboard.json'), 'utf8');
    const { panels } = JSON.parse(text) as { panels: { targets: { expr: string }[] }[] };
    const rules = panels.flatMap(({ targets }, panel) =>
      targets.map(({ expr }, i) => ({
        record: `panel:${panel}_${i}`,
        expr: expr.replaceAll('$__rate_interval', '1m').replaceAll('$election', '.*'),
      })),
    );
    const file = join(directory, 'panels.json');
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules }] }));
    const { stdout } = await run('promtool', ['check', 'rules', file]);
    expect(stdout).toContain(`SUCCESS: ${rules.length} rules found`);
  });

  test('a clean hand-over fires none, also when both processes are seen leading', async () => {
    const quiet = { 100: [], 120: [], 125: [], 130: [], 140: [], 200: [], 400: [] };
    await play('hand-over', [...leader('a', 0, 12, 7), ...leader('b', 12, 60, 8)], quiet);
    // Scraped before the hand-over and after it, at one tick.
    await play('both seen', [...leader('a', 0, 13, 7), ...leader('b', 12, 60, 8)], quiet);
  });

  test('a killed leader that is replaced within the bound fires none', async () => {
    await play('kill', [...killed('a', 12, 7), ...leader('b', 15, 60, 8)], {
      ...{ 125: [], 150: [], 155: [], 160: [], 300: [] },
    });
  });

  test('one that is not replaced fires when the bound is over, and no longer than that lasts', async () => {
    await play('leaderless', [...killed('a', 12, 7), ...leader('b', 24, 60, 8)], {
      ...{ 120: [], 155: [] },
      ...{ 165: ['IncumbentNoLeader'], 235: ['IncumbentNoLeader'] },
      ...{ 245: [], 300: [] },
    });
  });

  test('candidates of an election that never had a leader fire, too', async () => {
    await play('never', seriesOf('a', { leading: '0x60', candidates_waiting: '1x60' }), {
      ...{ 35: [], 45: ['IncumbentNoLeader'], 400: ['IncumbentNoLeader'] },
    });
  });

  test('an election that no process campaigns for any more fires for an hour', async () => {
    await play('nobody', killed('a', 12, 7), {
      ...{ 120: [], 155: [], 165: ['IncumbentNoCandidate'] },
      ...{ 3600: ['IncumbentNoCandidate'], 3900: [] },
    });
    const ended = seriesOf('a', { leading: '1x11 0x40', candidates_waiting: '0x52' });
    await play('ended', ended, { 155: [], 170: ['IncumbentNoCandidate'] });
  });

  test('two leaders by their tokens fire once both samples are younger than a hand-over', async () => {
    await play('two', [...leader('a', 0, 60, 7), ...leader('b', 12, 60, 8)], {
      ...{ 120: [], 130: [], 145: ['IncumbentTwoLeaders'], 400: ['IncumbentTwoLeaders'] },
    });
  });

  test('two processes with one token fire at once', async () => {
    await play('same token', [...leader('a', 0, 60, 7), ...leader('b', 12, 60, 7)], {
      ...{ 115: [], 125: ['IncumbentTwoLeaders'] },
    });
  });

  test('one process that two jobs scrape is one leader', async () => {
    const twice = leader('a', 0, 60, 7).flatMap(({ series, values }) => [
      { series: series.replace('{', '{job="x",'), values },
      { series: series.replace('{', '{job="y",'), values },
    ]);
    await play('scraped twice', twice, { 100: [], 400: [] });
  });

  test('a store that was set back to lower tokens fires', async () => {
    const values = '9x11 3x40';
    await play(
      'set back',
      seriesOf('a', { leading: '1x52', token: values, candidates_waiting: '0x52' }),
      {
        ...{ 115: [], 150: ['IncumbentTwoLeaders'] },
      },
    );
  });

  test('five terms in ten minutes are calm, and six are not', async () => {
    const calm = seriesOf('a', { term_starts_total: '0 1 2 3 4 5x60' });
    await play('calm', calm, { 100: [], 600: [] });
    const wild = seriesOf('a', { term_starts_total: '0 1 2 3 4 5 6x90' });
    await play('wild', wild, { 50: [], 65: ['IncumbentFlapping'], 800: [] });
  });

  test('a process that leads and crashes again and again flaps, whatever its counters say', async () => {
    const token = '1 2 3 4 5 6 7x60';
    const crashing = {
      leading: '1x66',
      token,
      candidates_waiting: '0x66',
      term_starts_total: '1x66',
    };
    await play('crash loop', seriesOf('a', crashing), {
      ...{ 45: [], 70: ['IncumbentFlapping'] },
    });
  });

  test('less than half of the belief fires, and no leader has no belief to lose', async () => {
    const belief = seriesOf('a', {
      belief_remaining_seconds: '9 7 6 5.9 9 0x20',
      belief_limit_seconds: '12x4 0x20',
    });
    await play('belief', belief, { 25: [], 30: ['IncumbentBeliefLow'], 40: [], 100: [] });
  });

  test('an overrun fires for ten minutes', async () => {
    await play('overrun', seriesOf('a', { overruns_total: '0x5 1x100' }), {
      ...{ 50: [], 65: ['IncumbentOverrun'], 600: ['IncumbentOverrun'], 700: [] },
    });
  });

  test('elections that are counted together, and other elections, say nothing of each other', async () => {
    const series = [
      ...seriesOf('a', { leading: '0x60', candidates_waiting: '3x60' }, '(other)'),
      ...seriesOf('a', { leading: '1x60', token: '7x60', candidates_waiting: '0x60' }, 'mail'),
      ...seriesOf('b', { leading: '1x60', token: '9x60', candidates_waiting: '0x60' }, 'jobs'),
    ];
    await play('apart', series, { 100: [], 500: [] });
  });
});

describe('/metrics of a run', () => {
  test('promtool finds nothing to say of it', async ({ lab }) => {
    const a = lab.run('A', lab.worker(), { options: ['--listen', '127.0.0.1:0'] });
    const { url } = await a.event('listening');
    const { token } = await a.started();
    await lab.works(token);
    const text = await (await fetch(`${url}/metrics`)).text();
    const checking = run('promtool', ['check', 'metrics']);
    checking.child.stdin?.end(text);
    expect(await checking).toEqual({ stdout: '', stderr: '' });
    expect(text).toMatch(/^incumbent_build_info\{version="[^"]+"\} 1$/m);
  });
});
