// The alerts, as rules of Prometheus.
import { metric, named } from './metric.mjs';

/** How many terms in ten minutes are too many. */
const calmTerms = 5;

export function alerts({ vacancySeconds, settledSeconds, scrapeSeconds }) {
  const leading = named('incumbent.leading');
  const waiting = named('incumbent.candidates.waiting');
  const token = `${named('incumbent.token')} > 0`;
  const newest = metric('incumbent.token');
  return [
    {
      name: 'IncumbentNoLeader',
      severity: 'critical',
      seconds: vacancySeconds,
      about: 'candidates campaign, and none of them leads',
      summary:
        'Election {{ $labels.election }}{{ with $labels.seat }}, seat {{ . }},{{ end }} has no leader',
      description:
        'Candidates have been campaigning for {{ $labels.election }} for longer than a takeover takes, and ' +
        'none leads. `incumbent status` says why: a store that is away, a drain, a hold, a failing health check.',
      expr: [
        // Of an election with several seats, each is to have one.
        `sum by (job, election, seat) (${leading}) == 0`,
        `and on (job, election) sum by (job, election) (${waiting}) > 0`,
      ],
    },
    {
      name: 'IncumbentNoCandidate',
      severity: 'warning',
      seconds: vacancySeconds,
      about: 'an election was led within the last hour, and no process campaigns for it any more',
      summary: 'Nobody campaigns for election {{ $labels.election }}',
      description:
        'No process that is scraped campaigns for {{ $labels.election }}, which was led within the last hour. ' +
        'Leave this alert out for elections that end on purpose.',
      expr: [
        `max by (job, election) (max_over_time(${leading}[1h])) > 0`,
        `unless on (job, election) sum by (job, election) (${leading}) + sum by (job, election) (${waiting}) > 0`,
      ],
    },
    {
      name: 'IncumbentTwoLeaders',
      severity: 'critical',
      seconds: 0,
      about:
        'a process leads with a token below one that was seen before, or two lead with one token',
      summary: 'Election {{ $labels.election }} has two leaders',
      description:
        'A process leads {{ $labels.election }} with token {{ $value }}, after a newer token was seen. Or two ' +
        'processes lead with one token. Or the store was set back. Let resources refuse the older token.',
      // A sample that is younger than `settledSeconds` is compared with tokens that were seen before.
      expr: [
        `(${token})`,
        '  < on (job, election, seat) group_left ()',
        `max by (job, election, seat) (max_over_time(${newest}[10m] offset ${settledSeconds}s))`,
        'or',
        'count by (job, election, seat) (count by (job, election, seat, instance) (',
        `  (${token}) == on (job, election, seat) group_left () max by (job, election, seat) (${newest})`,
        ')) > 1',
      ],
    },
    {
      name: 'IncumbentFlapping',
      severity: 'warning',
      seconds: 0,
      about: `more than ${calmTerms} terms began within ten minutes`,
      summary: 'The leader of election {{ $labels.election }} changes too often',
      description:
        `More than ${calmTerms} terms of {{ $labels.election }} began within ten minutes. ` +
        `${metric('incumbent.term.ends')} says for which reasons terms end.`,
      // `increase` extrapolates, so it is a little too much. The counter sees terms between two
      // scrapes. The token sees those of processes that crash.
      expr: [
        `floor(sum by (job, election) (increase(${named('incumbent.term.starts')}[10m]))) > ${calmTerms}`,
        `or changes((max by (job, election, seat) (${token}))[10m:${scrapeSeconds}s]) > ${calmTerms}`,
      ],
    },
    {
      name: 'IncumbentBeliefLow',
      severity: 'warning',
      seconds: 0,
      about: 'a leader has less than half of its belief left, because confirmations fail',
      summary: 'The leader of election {{ $labels.election }} is not confirmed',
      description:
        '{{ $labels.instance }} leads {{ $labels.election }} and has {{ $value | humanizeDuration }} of belief ' +
        'left, less than half. If the store does not answer soon, the term ends.',
      expr: [`${named('incumbent.belief.remaining')} < 0.5 * ${named('incumbent.belief.limit')}`],
    },
    {
      name: 'IncumbentOverrun',
      severity: 'critical',
      seconds: 0,
      about: 'work went on after its belief was over',
      summary: 'Work of election {{ $labels.election }} goes on without a leader behind it',
      description:
        'Work on {{ $labels.instance }} did not end with its term, so work of two leaders may run. Let it watch ' +
        '`term.signal`, and let resources refuse the older token.',
      expr: [`increase(${metric('incumbent.overruns')}[10m]) > 0`],
    },
  ];
}

/** The file for `rule_files` of Prometheus. */
export function alertFile(settings) {
  const { leaseSeconds, scrapeSeconds, boundSeconds, ruleSeconds } = settings;
  const rules = alerts(settings).map(
    ({ name, severity, seconds, summary, description, expr, about }) =>
      [
        `      # ${about}`,
        `      - alert: ${name}`,
        '        expr: |',
        ...expr.map((line) => `          ${line}`),
        ...(seconds > 0 ? [`        for: ${seconds}s`] : []),
        '        labels:',
        `          severity: ${severity}`,
        '        annotations:',
        `          summary: ${quoted(summary)}`,
        `          description: ${quoted(description)}`,
      ].join('\n'),
  );
  return [
    '# Alerts for elections of incumbent. Made by scripts/monitoring.mjs: do not edit.',
    `# For a lease of ${leaseSeconds} s, after which a leader is replaced within ${boundSeconds} s, and a scrape`,
    `# every ${scrapeSeconds} s. With a longer lease or rarer scrapes, make "for" and "offset" longer by as much.`,
    'groups:',
    '  - name: incumbent',
    `    interval: ${ruleSeconds}s`,
    '    rules:',
    rules.join('\n\n'),
    '',
  ].join('\n');
}

function quoted(text) {
  return `'${text.replaceAll("'", "''")}'`;
}
