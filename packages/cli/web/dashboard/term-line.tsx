import type { ShownElection } from '../../src/dashboard/shown.ts';
import { clockTime, span } from '../shared/words.ts';
import { colourOf } from './model.ts';

/** How a term ended that nobody wanted to end so. */
const badEnds: ReadonlySet<string> = new Set([
  'not-ready',
  'unclean',
  'work-failed',
  'renewal-failed',
  'stalled',
  'unhealthy',
  'takeover-failed',
  'record-gone',
  'session-expired',
]);

export function isBadEnd(why: string): boolean {
  return badEnds.has(why);
}

const height = 20;

interface Bar {
  readonly key: string;
  readonly from: number;
  readonly to: number;
  readonly id: string;
  readonly isBad: boolean;
  readonly title: string;
}

/** The terms of an election as bars; now is at the right edge. x is in thousandths of the window. */
export function TermLine({
  shown,
  nowUnixMs,
  windowMs,
}: {
  readonly shown: ShownElection;
  readonly nowUnixMs: number;
  readonly windowMs: number;
}) {
  const { history, leader, token, sinceUnixMs, state } = shown;
  const beginMs = nowUnixMs - windowMs;
  const x = (atMs: number) => Math.max(0, Math.min(1_000, ((atMs - beginMs) / windowMs) * 1_000));
  const bars: Bar[] = history
    .filter(({ toUnixMs }) => toUnixMs > beginMs)
    .map((term) => ({
      key: term.token,
      from: x(term.fromUnixMs),
      to: x(term.toUnixMs),
      id: term.id,
      isBad: isBadEnd(term.why),
      title: `${term.id}, token ${term.token}, ${span(term.toUnixMs - term.fromUnixMs)}, ended ${clockTime(term.toUnixMs)}: ${term.why}`,
    }));
  if (state === 'led' && leader !== null && sinceUnixMs !== null) {
    bars.push({
      key: token ?? 'now',
      from: x(sinceUnixMs),
      to: 1_000,
      id: leader.id,
      isBad: false,
      title: `${leader.id}, token ${token}, leads since ${clockTime(sinceUnixMs)}`,
    });
  }
  const last = history.at(-1);
  const isVacant = state === 'vacant' && last !== undefined;
  return (
    <svg
      class="terms"
      viewBox={`0 0 1000 ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${bars.length} terms in the last ${span(windowMs)}`}
    >
      {isVacant && (
        <rect
          class="vacant"
          x={x(last.toUnixMs)}
          y={height / 2 - 2}
          width={1_000 - x(last.toUnixMs)}
          height={4}
        >
          <title>{`no leader since ${clockTime(last.toUnixMs)}`}</title>
        </rect>
      )}
      {bars.map(({ key, from, to, id, isBad, title }) => (
        <g key={key}>
          <rect
            class={`term colour-${colourOf(id)}`}
            x={from}
            y={1}
            width={Math.max(2, to - from)}
            height={height - 2}
          >
            <title>{title}</title>
          </rect>
          {isBad && (
            <rect class="bad-end" x={Math.max(0, to - 3)} y={0} width={4} height={height} />
          )}
        </g>
      ))}
    </svg>
  );
}
