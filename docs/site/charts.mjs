// Charts are drawn from the table that follows them, so the two cannot differ:
//
//   <!-- chart { "title": "Hand-over", "unit": "ms", "columns": ["p50", "p95"] } -->
//
//   | | p50 | p95 |
//   …
//
// A bar for each row and column. `rows` chooses rows; `others` names those that are drawn in grey
// (peers and floors). With `row` instead, there is a bar for each of `columns` in that one row.
// `labels` gives rows or columns a shorter name, and `scale` is `linear` (default) or `log`.

/** A plugin of markdown-it. */
export function charts(md) {
  md.core.ruler.push('charts', ({ tokens, env }) => {
    for (const [i, token] of tokens.entries()) {
      const [, json] = /^<!-- chart (.*?)-->/s.exec(token.content) ?? [];
      if (token.type !== 'html_block' || json === undefined) continue;
      try {
        token.content = draw(JSON.parse(json), tableAfter(tokens, i), md.utils.escapeHtml);
      } catch (error) {
        throw new Error(`${env.relativePath}: a chart: ${error.message}`, { cause: error });
      }
    }
  });
}

/** The rows of the next table, as text. */
function tableAfter(tokens, start) {
  const from = tokens.findIndex(({ type }, i) => i > start && type === 'table_open');
  if (from === -1) throw new Error('no table follows');
  const rows = [];
  for (let i = from; tokens[i].type !== 'table_close'; i += 1) {
    if (tokens[i].type === 'tr_open') rows.push([]);
    if (tokens[i].type === 'inline') rows.at(-1).push(plain(tokens[i]));
  }
  const [head, ...body] = rows;
  return { head, body };
}

function plain({ children }) {
  return children.map(({ content }) => content).join('');
}

function draw(chart, table, escapeHtml) {
  const { title, unit = '', scale = 'linear', others = [], labels = {} } = chart;
  const bars = chart.row === undefined ? barsOfRows(chart, table) : barsOfColumns(chart, table);
  const values = bars.flatMap(({ series }) => series.map(({ value }) => value));
  const width = scale === 'log' ? logarithmic(values) : linear(values);
  const columns = chart.row === undefined ? chart.columns : [];
  const lines = bars.map(({ label, series }) => {
    const drawn = series.map(({ value, text, number }) => {
      const style = `width:${width(value).toFixed(1)}%`;
      const shown = escapeHtml(unit === '' || text.includes(unit) ? text : `${text} ${unit}`);
      return `<div class="bar-line"><span class="bar series-${number}" style="${style}"></span><span class="bar-value">${shown}</span></div>`;
    });
    const kind = others.includes(label) ? ' is-other' : '';
    const name = escapeHtml(labels[label] ?? label);
    return `<div class="bar-group${kind}" role="listitem"><div class="bar-label">${name}</div><div class="bars">${drawn.join('')}</div></div>`;
  });
  const legend = columns.map(
    (column, i) =>
      `<span><i class="bar series-${i}"></i>${escapeHtml(labels[column] ?? column)}</span>`,
  );
  const notes = [
    ...(legend.length > 1 ? legend : []),
    ...(scale === 'log' ? ['<span>logarithmic scale</span>'] : []),
  ];
  return `<figure class="bar-chart"><figcaption>${escapeHtml(title)}</figcaption>
<div role="list">${lines.join('\n')}</div>
${notes.length > 0 ? `<div class="bar-legend">${notes.join('')}</div>` : ''}
</figure>\n`;
}

function barsOfRows({ columns, rows }, { head, body }) {
  const numbers = columns.map((column) => indexOf(head, column));
  const chosen = rows?.map((name) => rowOf(body, name)) ?? body;
  return chosen.map(([label, ...rest]) => ({
    label,
    series: numbers.flatMap((at, number) => measured(rest[at - 1], number)),
  }));
}

function barsOfColumns({ row, columns }, { head, body }) {
  const cells = rowOf(body, row);
  return columns.map((label) => ({ label, series: measured(cells[indexOf(head, label)], 0) }));
}

function rowOf(body, name) {
  const row = body.find(([label]) => label === name);
  if (row === undefined) throw new Error(`the table has no row "${name}"`);
  return row;
}

function indexOf(head, name) {
  const at = head.indexOf(name);
  if (at === -1) throw new Error(`the table has no column "${name}"`);
  return at;
}

/** Of an empty cell nothing is drawn. */
function measured(text, number) {
  if (text === '') return [];
  const value = Number.parseFloat(text);
  if (Number.isNaN(value) || value < 0) throw new Error(`"${text}" cannot be drawn`);
  return [{ value, text, number }];
}

function linear(values) {
  const most = Math.max(...values);
  return (value) => (most === 0 ? 0 : (100 * value) / most);
}

/** From half of the smallest on, so that it has a bar, too. */
function logarithmic(values) {
  const least = Math.min(...values) / 2;
  const span = Math.log(Math.max(...values) / least);
  return (value) => (100 * Math.log(value / least)) / span;
}
