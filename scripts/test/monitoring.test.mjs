// The alert file, the dashboard and the reference that are kept are what the table of instruments
// makes. Integration tests of the commands run them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { electionInstruments } from 'incumbent/metrics';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { root } from '../lib/run.mjs';
import { alertFile, alerts } from '../monitoring/alerts.mjs';
import { dashboard } from '../monitoring/dashboard.mjs';
import { metric } from '../monitoring/metric.mjs';
import { kept, reference } from '../monitoring/reference.mjs';
import { settingsFor } from '../monitoring/settings.mjs';

const settings = settingsFor();
const names = new Set(electionInstruments.map(({ promName }) => promName));

/** Names of metrics, without what Prometheus adds to those of histograms. */
function metricsIn(text) {
  return (text.match(/\bincumbent_\w+/g) ?? []).map((name) =>
    names.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ''),
  );
}

it.each([
  ['alerts', () => alertFile(settings)],
  ['dashboard', dashboard],
  ['reference', () => reference(settings)],
])(
  'the %s that are kept are those of the table: else run `node scripts/monitoring.mjs`',
  (what, make) => {
    expect(readFileSync(join(root, kept[what]), 'utf8')).toBe(make());
  },
);

it('alerts and panels know metrics of the table alone, and the dashboard shows all of them', () => {
  const { panels, templating } = JSON.parse(dashboard());
  const shown = new Set(
    panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => metricsIn(expr))),
  );
  expect([...shown].sort()).toEqual([...names].sort());
  const others = [...metricsIn(alertFile(settings)), ...metricsIn(JSON.stringify(templating))];
  expect(others.filter((name) => !names.has(name))).toEqual([]);
  expect(() => metric('incumbent.leader')).toThrow('there is no instrument incumbent.leader');
});

it('the alert file is YAML with one rule for each alert', () => {
  const { groups } = parse(alertFile(settings));
  expect(groups[0].interval).toBe('5s');
  expect(groups[0].rules.map(({ alert }) => alert)).toEqual(
    alerts(settings).map(({ name }) => name),
  );
  for (const { annotations, labels } of groups[0].rules) {
    expect(annotations.summary).toContain('$labels.election');
    expect(annotations.description).toMatch(/\.$/);
    expect(['critical', 'warning']).toContain(labels.severity);
  }
});

it('no alert takes elections of one name in two jobs for one', () => {
  for (const { name, expr } of alerts(settings)) {
    const groups = expr.join('\n').match(/\b(?:by|on) \([^)]*\)/g) ?? [];
    for (const group of groups) expect(group, name).toMatch(/^(?:by|on) \(job, election\b/);
  }
});

it('the panels of the dashboard have numbers of their own and do not overlap', () => {
  const { panels } = JSON.parse(dashboard());
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
    expect(x + w).toBeLessThanOrEqual(24);
    return Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`);
  });
  expect(new Set(cells).size).toBe(cells.length);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
});

it('durations follow from the lease and the scrapes', () => {
  expect(settings).toMatchObject({ boundSeconds: 30, vacancySeconds: 40, settledSeconds: 15 });
  const other = settingsFor({ lease: '45s', scrape: '30s' });
  expect(other.boundSeconds).toBeGreaterThan(70);
  expect(other.settledSeconds).toBe(45);
  const text = alertFile(other);
  expect(text).toContain(`for: ${other.boundSeconds + 30}s`);
  expect(text).toContain('offset 45s');
  expect(() => settingsFor({ lease: 'soon' })).toThrow('lease');
});
