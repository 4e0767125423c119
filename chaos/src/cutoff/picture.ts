/** The timeline of a recorded cut as SVG, ours above kazoo's; readable on light and dark pages. */
import type { RecordedCandidate, RecordedElection, Recording } from './recording.ts';

const width = 760;
const height = 372;
const left = 92;
const right = width - 20;
const fromMs = -2_500;
const toMs = 11_500;
const laneHeight = 16;

type Span = readonly [fromMs: number, toMs: number];

export function draw(recording: Recording): string {
  const { ours, kazoo, timeoutMs, tickMs, recordedOn } = recording;
  const settings = `session timeout ${timeoutMs / 1000} s, tickTime ${tickMs / 1000} s, syncLimit 5, recorded ${recordedOn}`;
  const parts = [
    text(
      left,
      26,
      'The server of leader A is cut off from its quorum and goes on answering A',
      'title',
    ),
    text(left, 45, settings, 'faint'),
    ...drawOurs(ours, 76),
    ...drawKazoo(kazoo, 222),
    ...axis(318),
  ];
  const label = `${sentenceOf('incumbent', ours)}; ${sentenceOf('kazoo', kazoo)}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${label}">
${style}
<rect class="page" width="${width}" height="${height}" rx="8"/>
${parts.join('\n')}
</svg>
`;
}

/** How long both led, in ms. */
export function sharedMs({ a, b }: RecordedElection): number {
  let sum = 0;
  for (const one of a.leads) {
    for (const other of b.leads) {
      const sharedFromMs = Math.max(one.fromMs, other.fromMs);
      sum += Math.max(0, Math.min(one.toMs, other.toMs) - sharedFromMs);
    }
  }
  return sum;
}

function drawOurs(ours: RecordedElection, top: number): string[] {
  const [laneA, laneB] = [top + 18, top + 72];
  const endMs = ours.a.leads[0]?.toMs ?? 0;
  const startMs = ours.b.leads[0]?.fromMs ?? toMs;
  return [
    text(left, top, `incumbent: ${verdict(ours)}`, 'heading'),
    name('A', laneA),
    ...bars(ours.a, laneA, 'leads'),
    ...checks(ours.a, laneA),
    text(x(endMs) + 8, laneA + 12, `last confirmed + belief = ${inSeconds(endMs)}: A stops`),
    name('B', laneB),
    waiting([fromMs, ours.placeGoneMs], laneB),
    bar([ours.placeGoneMs, startMs], laneB, 'holds'),
    ...bars(ours.b, laneB, 'leads'),
    ...checks(ours.b, laneB),
    text(
      x(ours.placeGoneMs),
      laneB - 6,
      `${inSeconds(ours.placeGoneMs)}: A's place is gone; B waits A's belief out`,
    ),
    text(x(startMs) + 8, laneB + 12, `B leads from ${inSeconds(startMs)}`, 'on'),
  ];
}

function drawKazoo(kazoo: RecordedElection, top: number): string[] {
  const [laneA, laneB] = [top + 18, top + 54];
  const endMs = kazoo.a.leads[0]?.toMs ?? 0;
  const startMs = kazoo.b.leads[0]?.fromMs ?? toMs;
  const shared: Span = [startMs, Math.max(startMs, endMs)];
  return [
    text(left, top, `kazoo’s Election: ${verdict(kazoo)}`, 'heading'),
    name('A', laneA),
    ...bars(kazoo.a, laneA, 'leads'),
    bar(shared, laneA, 'both'),
    text(x(startMs) + 8, laneA + 12, 'A leads on: its pings are answered', 'on'),
    text(x(endMs) + 6, laneA + 12, 'A is told'),
    name('B', laneB),
    waiting([fromMs, startMs], laneB),
    ...bars(kazoo.b, laneB, 'leads'),
    bar(shared, laneB, 'both'),
    text(x(startMs) + 8, laneB + 12, `B leads from ${inSeconds(startMs)}`, 'on'),
  ];
}

function axis(y: number): string[] {
  const seconds = Array.from({ length: 7 }, (_none, index) => index * 2);
  const legend: readonly (readonly [at: number, kind: string, label: string])[] = [
    [0, 'leads', 'says that it leads'],
    [150, 'both', 'and so does the other'],
    [322, 'holds', 'has won, waits'],
  ];
  const keyY = y + 26;
  return [
    // Not through the headings.
    `<path class="cut" d="M${x(0)} 88V200M${x(0)} 234V${y}"/>`,
    `<path class="axis" d="M${left} ${y}H${right}"/>`,
    ...seconds
      .filter((second) => second * 1000 <= toMs)
      .flatMap((second) => [
        `<path class="axis" d="M${x(second * 1000)} ${y}v4"/>`,
        text(x(second * 1000), y + 17, second === 0 ? 'cut off' : `${second} s`, 'faint middle'),
      ]),
    ...legend.flatMap(([at, kind, label]) => {
      const keyX = left + at;
      return [
        `<rect class="${kind}" x="${keyX}" y="${keyY + 4}" width="14" height="11" rx="2"/>`,
        text(keyX + 20, keyY + 14, label, 'faint'),
      ];
    }),
    `<path class="ok" d="M${left + 460} ${keyY + 5}v9"/>`,
    `<path class="lost" d="M${left + 469} ${keyY + 5}v9"/>`,
    text(left + 478, keyY + 14, 'confirmation: answered, not', 'faint'),
  ];
}

function bars({ leads }: RecordedCandidate, y: number, kind: string): string[] {
  return leads.map((spell) => bar([spell.fromMs, spell.toMs], y, kind));
}

function bar([startMs, endMs]: Span, y: number, kind: string): string {
  const start = x(startMs);
  const size = Math.max(0, x(endMs) - start);
  if (size === 0) return '';
  return `<rect class="${kind}" x="${start}" y="${y}" width="${round(size)}" height="${laneHeight}" rx="2"/>`;
}

function waiting([startMs, endMs]: Span, y: number): string {
  const middle = y + laneHeight / 2;
  return `<path class="waits" d="M${x(startMs)} ${middle}H${x(endMs) - 4}"/>`;
}

/** When each was sent, below the lane. */
function checks(candidate: RecordedCandidate, y: number): string[] {
  return candidate.checks
    .filter(({ sentMs }) => sentMs > fromMs && sentMs < toMs)
    .map(({ sentMs, ok }) => {
      return `<path class="${ok ? 'ok' : 'lost'}" d="M${x(sentMs)} ${y + laneHeight + 3}v7"/>`;
    });
}

function name(candidate: string, y: number): string {
  return text(left - 14, y + 12, candidate, 'end');
}

function text(at: number, y: number, content: string, kind = ''): string {
  const escaped = content.replace(/&/g, '&amp;').replace(/</g, '&lt;');
  return `<text x="${round(at)}" y="${y}"${kind && ` class="${kind}"`}>${escaped}</text>`;
}

/** Where an instant is; what is outside the picture is at its edge. */
function x(ms: number): number {
  const within = Math.min(toMs, Math.max(fromMs, ms));
  return round(left + ((within - fromMs) / (toMs - fromMs)) * (right - left));
}

function verdict(election: RecordedElection): string {
  const ms = sharedMs(election);
  return ms > 0 ? `two leaders for ${inSeconds(ms)}` : 'never two leaders';
}

function sentenceOf(who: string, election: RecordedElection): string {
  const startMs = election.b.leads[0]?.fromMs ?? 0;
  const endMs = election.a.leads[0]?.toMs ?? 0;
  return `${who}: A leads until ${inSeconds(endMs)} after the cut, B from ${inSeconds(startMs)}, ${verdict(election)}`;
}

function inSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

const style = `<style>
text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}.heading{font-weight:600}.end{text-anchor:end}.middle{text-anchor:middle}
.page{fill:#fff}.faint{fill:#59636e;font-size:12px}.on{fill:#fff}
.leads{fill:#1a7f37}.both{fill:#cf222e}.holds{fill:#d4a72c}
.waits,.axis,.cut,.ok,.lost{fill:none;stroke:#8c959f}.waits{stroke-width:2;stroke-dasharray:1 5;stroke-linecap:round}
.cut{stroke-dasharray:4 3}.ok{stroke:#1a7f37;stroke-width:2}.lost{stroke:#cf222e;stroke-width:2}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.page{fill:#0d1117}.faint{fill:#9198a1}.on{fill:#fff}
.leads{fill:#238636}.both{fill:#da3633}.holds{fill:#9e6a03}.ok{stroke:#3fb950}.lost{stroke:#f85149}}
</style>`;
