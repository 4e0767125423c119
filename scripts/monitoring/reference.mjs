// The reference of the metrics, and where the kept files are.
import { electionInstruments } from 'incumbent/metrics';
import { alerts } from './alerts.mjs';

/** Paths of the kept files, from the root of the repository. */
export const kept = {
  alerts: 'docs/public/monitoring/incumbent-alerts.yml',
  dashboard: 'docs/public/monitoring/incumbent-dashboard.json',
  reference: 'docs/reference/metrics.md',
};

/** The text of the page. */
export function reference(settings) {
  const row = (...cells) => `| ${cells.join(' | ')} |`;
  const instruments = electionInstruments.map(({ name, promName, kind, unit, help, attributes }) =>
    row(
      `\`${name}\``,
      `\`${promName}\``,
      kind,
      `\`${unit}\``,
      attributes.map((attribute) => `\`${attribute}\``).join(', '),
      help,
    ),
  );
  const values = [
    ...new Map(
      electionInstruments.flatMap(({ by }) => (by === undefined ? [] : [[by.name, by]])),
    ).values(),
  ].map(
    ({ name, values: all }) => `- \`${name}\`: ${all.map((value) => `\`${value}\``).join(', ')}.`,
  );
  const buckets = electionInstruments
    .filter((instrument) => instrument.buckets !== undefined)
    .map(({ name, buckets: bounds }) => row(`\`${name}\``, bounds.join(', ')));
  const list = alerts(settings).map(({ name, severity, seconds, about }) =>
    row(`\`${name}\``, severity, seconds === 0 ? 'at once' : `after ${seconds} s`, about),
  );
  return [
    '<!-- Made by scripts/monitoring.mjs: do not edit. -->',
    '',
    '# Metrics',
    '',
    'All instruments of `incumbent/metrics`. How to use them: [see your elections in',
    'Prometheus](../guides/monitoring.md).',
    '',
    row('OpenTelemetry', 'Prometheus', 'kind', 'unit', 'attributes', 'what it tells'),
    row('---', '---', '---', '---', '---', '---'),
    ...instruments,
    '',
    '- A gauge stays at 0 for an election that this process has once campaigned for.',
    '- A counter is there, at 0, from the beginning of the first campaign.',
    '- `election` is the name of the election, or `(other)` after the first 100 elections of a process.',
    '- `seat` is there for elections with several seats alone: from 1 to their number. Not for `(other)`, nor with the',
    '  option `election`.',
    '',
    '## Values of attributes',
    '',
    ...wrapped(values),
    '',
    '## Buckets, in seconds',
    '',
    row('histogram', 'bounds'),
    row('---', '---'),
    ...buckets,
    '',
    '## Alerts',
    '',
    'Those of [incumbent-alerts.yml](../public/monitoring/incumbent-alerts.yml). It is made for a lease of',
    `${settings.leaseSeconds} s and a scrape every ${settings.scrapeSeconds} s.`,
    '',
    row('alert', 'severity', 'fires', 'when'),
    row('---', '---', '---', '---'),
    ...list,
    '',
  ].join('\n');
}

const longestLine = 118;

/** Items of a list, broken between words. */
function wrapped(items) {
  return items.flatMap((item) => {
    const lines = [''];
    for (const word of item.split(' ')) {
      const last = lines.at(-1);
      if (last !== '' && `${last} ${word}`.length > longestLine) lines.push(`  ${word}`);
      else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
    }
    return lines;
  });
}
