// Plays a demo in a terminal of 80 columns (tmux) and writes its last picture.
//
//   node scripts/demo-svg.mjs              the elections, docs/start/demo.svg
//   node scripts/demo-svg.mjs zookeeper    the ZooKeeper client, docs/start/zookeeper-demo.svg
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './lib/run.mjs';

const columnWidth = 8.4;
const rowHeight = 19;
const padding = 18;
const fontSize = 14;
const palette = {
  background: '#0d1117',
  text: '#e6edf3',
  green: '#3fb950',
  yellow: '#d29922',
  red: '#f85149',
  cyan: '#56d4dd',
  gray: '#7d8590',
};
const colorOfCode = { 31: 'red', 32: 'green', 33: 'yellow', 36: 'cyan', 90: 'gray' };

// Built, because a literal would have a control character in it.
const style = '\\u001b\\[([\\d;]*)m';
const styles = new RegExp(style, 'g');

const scenes = {
  elections: {
    command: [join(root, 'packages/cli/dist/bin.js'), 'demo'],
    ended: /\d overlaps?/,
    file: 'docs/start/demo.svg',
    label:
      'incumbent demo: five candidates, the leader is killed, frozen and asked to resign; another takes over each time',
  },
  zookeeper: {
    command: [join(root, 'scripts/zookeeper-demo.mjs')],
    ended: /\d outstanding/,
    file: 'docs/start/zookeeper-demo.svg',
    label:
      'the ZooKeeper client: cut off for 0.3 s it tells the change that it missed; while the network is silent it says suspended, then expired, and loses no call',
  },
};
const scene = scenes[process.argv[2] ?? 'elections'];
if (scene === undefined) throw new Error(`the demos are ${Object.keys(scenes).join(', ')}`);

const lines = trim(play(scene));
mkdirSync(join(root, 'docs'), { recursive: true });
writeFileSync(join(root, scene.file), svg(lines, scene.label));
console.log(lines.map((line) => line.replaceAll(styles, '')).join('\n'));

/** @returns {string[]} the lines of the last picture, with their colours as escape sequences */
function play({ command, ended }) {
  const tmux = (...args) => execFileSync('tmux', ['-L', `demo-svg-${process.pid}`, ...args]);
  const demo = [process.execPath, ...command].join(' ');
  // The pane has to outlive the demo for its picture to be taken.
  tmux('-f', '/dev/null', 'new-session', '-d', '-x', '80', '-y', '26', `${demo}; sleep 60`);
  try {
    for (let seconds = 0; seconds < 60; seconds += 1) {
      execFileSync('sleep', ['1']);
      const picture = tmux('capture-pane', '-p', '-e').toString();
      if (ended.test(picture)) return picture.split('\n');
    }
    throw new Error('the demo has not ended');
  } finally {
    tmux('kill-server');
  }
}

/** Without the empty lines before and behind. */
function trim(all) {
  const isEmpty = (line) => line.replaceAll(styles, '').trim() === '';
  const lines = [...all];
  while (isEmpty(lines[0])) lines.shift();
  while (isEmpty(lines.at(-1))) lines.pop();
  // The picture keeps room for notes that did not come.
  return lines.filter((line, i) => !(isEmpty(line) && isEmpty(lines[i - 1] ?? '')));
}

function svg(lines, label) {
  const width = 80 * columnWidth + 2 * padding - 4 * columnWidth;
  const height = lines.length * rowHeight + 2 * padding;
  const parts = lines.flatMap((line, row) => drawLine(line, row));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${round(width)} ${height}" width="${round(width)}" height="${height}" role="img" aria-label="${escapeXml(label)}">
<rect width="100%" height="100%" rx="8" fill="${palette.background}"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${fontSize}" fill="${palette.text}">
${parts.join('\n')}
</g>
</svg>
`;
}

/** Runs of one style become one text; blocks are drawn, because fonts leave gaps between them. */
function drawLine(line, row) {
  const parts = [];
  let column = -2;
  let color;
  let bold = false;
  // Every other piece is what the expression captured.
  for (const [i, piece] of line.split(new RegExp(style)).entries()) {
    if (i % 2 === 1) {
      for (const code of piece.split(';').map(Number)) {
        if (code === 0) [color, bold] = [undefined, false];
        else if (code === 1) bold = true;
        else if (code === 22) bold = false;
        else if (code === 39) color = undefined;
        else color = colorOfCode[code] ?? color;
      }
      continue;
    }
    for (const [run] of piece.matchAll(/█+|░+| +|[^█░ ]+(?: [^█░ ]+)*/g)) {
      const x = padding + column * columnWidth;
      const y = padding + row * rowHeight;
      const length = [...run].length;
      const fill = color === undefined ? '' : ` fill="${palette[color]}"`;
      if (/[█░]/.test(run)) {
        const faint = run.startsWith('░') ? ' opacity="0.4"' : '';
        parts.push(
          `<rect x="${round(x)}" y="${y + 3}" width="${round(length * columnWidth)}" height="${rowHeight - 6}"${fill}${faint}/>`,
        );
      } else if (run.trim() !== '') {
        const weight = bold ? ' font-weight="bold"' : '';
        parts.push(
          `<text x="${round(x)}" y="${y + 14}" textLength="${round(length * columnWidth)}"${fill}${weight}>${escapeXml(run)}</text>`,
        );
      }
      column += length;
    }
  }
  return parts;
}

function escapeXml(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function round(number) {
  return Math.round(number * 10) / 10;
}
