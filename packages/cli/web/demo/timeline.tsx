import type { Snapshot } from '../../src/demo/snapshot.ts';

type Lane = Snapshot['lanes'][number];

const height = 34;
const markSigns: Readonly<Record<Lane['marks'][number][1], string>> = {
  killed: '✕',
  frozen: '❄',
  thawed: '↑',
  resigned: '↓',
};

/** The last minute of a candidate; now is at the right edge. x is in thousandths of the window. */
export function Timeline({
  lane,
  nowMs,
  windowMs,
}: {
  readonly lane: Lane;
  readonly nowMs: number;
  readonly windowMs: number;
}) {
  const x = (atMs: number) =>
    Math.max(0, Math.min(1_000, 1_000 - ((nowMs - atMs) / windowMs) * 1_000));
  const spans = lane.conditions.map(([sinceMs, condition], index) => {
    const untilMs = lane.conditions[index + 1]?.[0] ?? nowMs;
    return { condition, from: x(sinceMs), to: x(untilMs) };
  });
  const seconds = Math.round(windowMs / 1000);
  return (
    <div class="timeline">
      <svg
        viewBox={`0 0 1000 ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${lane.id}: the last ${seconds} seconds`}
      >
        {spans.map(({ condition, from, to }) => (
          <rect
            key={`${condition} ${from}`}
            class={condition}
            x={from}
            y={height / 2 - 3}
            width={Math.max(0, to - from)}
            height={6}
          />
        ))}
        {lane.work.map(([fromMs, toMs, token]) => (
          <rect
            key={token}
            class="work"
            x={x(fromMs)}
            y={4}
            width={Math.max(1.5, x(toMs) - x(fromMs))}
            height={height - 8}
          >
            <title>{`token ${token}: ${((toMs - fromMs) / 1000).toFixed(2)} s`}</title>
          </rect>
        ))}
      </svg>
      {lane.marks.map(([atMs, mark]) => (
        <span
          key={`${mark} ${atMs}`}
          class={`mark ${mark}`}
          ref={(span) => {
            // The policy of the page lets no style stand in HTML, but scripts may set it.
            if (span !== null) span.style.left = `${x(atMs) / 10}%`;
          }}
          aria-hidden="true"
        >
          {markSigns[mark]}
        </span>
      ))}
    </div>
  );
}
