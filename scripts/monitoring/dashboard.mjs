// A dashboard of Grafana: every instrument, for the elections that are chosen at its top.
import { metric } from './metric.mjs';

const datasource = { type: 'prometheus', uid: '$datasource' };
const columns = 24;
const window = '$__rate_interval';

const of = (name, more = '') => `${metric(name)}{election=~"$election"${more}}`;
const rate = (name) => `sum by (election) (increase(${of(name)}[${window}]))`;

function quantiles(name, by = []) {
  const bucket = `${metric(name)}_bucket{election=~"$election"}`;
  const labels = ['election', ...by];
  const legend = labels.map((label) => `{{${label}}}`).join(' ');
  return [0.5, 0.99].map((q) => ({
    expr: `histogram_quantile(${q}, sum by (le, ${labels.join(', ')}) (rate(${bucket}[${window}])))`,
    legend: `${legend} p${q * 100}`,
  }));
}

const rows = [
  [
    {
      title: 'Elections without a leader',
      type: 'stat',
      width: 4,
      height: 8,
      thresholds: [0, 1],
      targets: [
        {
          expr:
            `count(sum by (job, election) (${of('incumbent.leading')}) == 0 and ` +
            `sum by (job, election) (${of('incumbent.candidates.waiting')}) > 0) or vector(0)`,
          legend: 'without a leader',
        },
      ],
    },
    {
      title: 'Who leads',
      about: 'Each process, while it leads',
      type: 'state-timeline',
      width: 20,
      height: 8,
      targets: [{ expr: `${of('incumbent.leading')} > 0`, legend: '{{election}} on {{instance}}' }],
    },
  ],
  [
    {
      title: 'Token',
      about: 'It rises with each term, and never falls',
      targets: [{ expr: `${of('incumbent.token')} > 0`, legend: '{{election}} on {{instance}}' }],
    },
    {
      title: 'Belief left',
      about: 'How much of its belief the leader has left. Confirmations fill it up',
      unit: 'percentunit',
      targets: [
        {
          expr: `${of('incumbent.belief.remaining')} / (${of('incumbent.belief.limit')} > 0)`,
          legend: '{{election}} on {{instance}}',
        },
      ],
    },
    {
      title: 'Candidates',
      targets: [
        {
          expr: `sum by (election) (${of('incumbent.candidates.waiting')})`,
          legend: '{{election}} waiting',
        },
        { expr: `sum by (election) (${of('incumbent.ready')})`, legend: '{{election}} ready' },
        {
          expr: `sum by (election) (${of('incumbent.candidates.unhealthy')})`,
          legend: '{{election}} unhealthy',
        },
      ],
    },
  ],
  [
    {
      title: 'Terms that ended, by reason',
      type: 'bars',
      targets: [
        {
          expr: `sum by (election, reason) (increase(${of('incumbent.term.ends')}[${window}])) > 0`,
          legend: '{{election}} {{reason}}',
        },
      ],
    },
    {
      title: 'Terms that began',
      type: 'bars',
      targets: [{ expr: rate('incumbent.term.starts'), legend: '{{election}}' }],
    },
    {
      title: 'What went wrong',
      about: 'Failures, seats that were not given back, and work that outlived its term',
      type: 'bars',
      targets: [
        ['incumbent.overruns', 'overruns'],
        ['incumbent.term.abandoned', 'seats not given back'],
        ['incumbent.takeover.failures', 'takeovers failed'],
        ['incumbent.confirmation.failures', 'confirmations failed'],
        ['incumbent.troubles', 'troubles'],
      ].map(([name, words]) => ({ expr: `${rate(name)} > 0`, legend: `{{election}} ${words}` })),
    },
  ],
  [
    {
      title: 'Confirmations',
      about: 'How long they take',
      unit: 's',
      targets: quantiles('incumbent.confirmation.duration'),
    },
    {
      title: 'Takeovers',
      about: 'From winning the seat to the beginning of the term',
      unit: 's',
      targets: quantiles('incumbent.takeover.duration', ['predecessor']),
    },
    {
      title: 'Hand-overs',
      about: 'From being told to stop to the seat given back',
      unit: 's',
      targets: quantiles('incumbent.handover.duration'),
    },
  ],
];

/** The text of the file that Grafana imports. */
export function dashboard() {
  let y = 0;
  const panels = rows.flatMap((row) => {
    let x = 0;
    const height = row[0].height ?? 8;
    const made = row.map((panel) => {
      const width = panel.width ?? columns / row.length;
      const at = { x, y, w: width, h: height };
      x += width;
      return { panel, at };
    });
    y += height;
    return made;
  });
  const model = {
    title: 'Elections (incumbent)',
    uid: 'incumbent-elections',
    description: 'Made by scripts/monitoring.mjs of incumbent',
    tags: ['incumbent'],
    schemaVersion: 39,
    refresh: '10s',
    time: { from: 'now-1h', to: 'now' },
    graphTooltip: 1,
    templating: { list: [datasourceVariable, electionVariable()] },
    panels: panels.map(({ panel, at }, i) => panelOf(panel, at, i + 1)),
  };
  return `${JSON.stringify(model, null, 2)}\n`;
}

const datasourceVariable = {
  name: 'datasource',
  label: 'Prometheus',
  type: 'datasource',
  query: 'prometheus',
};

function electionVariable() {
  const query = `label_values(${metric('incumbent.leading')}, election)`;
  return {
    name: 'election',
    label: 'Election',
    type: 'query',
    datasource,
    query: { query, refId: 'elections' },
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: { text: 'All', value: '$__all' },
  };
}

function panelOf({ title, about, type = 'lines', unit, targets, thresholds }, gridPos, id) {
  const isLines = type === 'lines' || type === 'bars';
  const steps = thresholds?.map((value, i) => ({
    color: ['green', 'red'][i],
    value: i === 0 ? null : value,
  }));
  return {
    id,
    title,
    ...(about !== undefined && { description: about }),
    type: isLines ? 'timeseries' : type,
    datasource,
    gridPos,
    fieldConfig: {
      defaults: {
        ...(unit !== undefined && { unit }),
        ...(steps !== undefined && { thresholds: { mode: 'absolute', steps } }),
        ...(isLines && {
          min: 0,
          custom: type === 'bars' ? { drawStyle: 'bars', fillOpacity: 60 } : { drawStyle: 'line' },
        }),
      },
      overrides: [],
    },
    targets: targets.map(({ expr, legend }, i) => ({
      refId: String.fromCharCode(65 + i),
      datasource,
      expr,
      legendFormat: legend,
    })),
  };
}
