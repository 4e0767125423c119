import type { Snapshot } from '../../src/demo/snapshot.ts';

/** The fenced log: all terms on one line, so that two at once would lie on each other. */
export function LogTape({ at }: { readonly at: Snapshot }) {
  const { nowMs, windowMs } = at;
  const x = (atMs: number) => Math.max(0, 1_000 - ((nowMs - atMs) / windowMs) * 1_000);
  const terms = at.lanes.flatMap(({ id, work }, lane) =>
    work.map(([fromMs, toMs, token]) => ({ id, lane, fromMs, toMs, token })),
  );
  return (
    <section class="log" aria-labelledby="log-title">
      <h2 id="log-title">The fenced log</h2>
      <svg
        class="tape"
        viewBox="0 0 1000 20"
        preserveAspectRatio="none"
        role="img"
        aria-label={`Terms of the last ${Math.round(windowMs / 1000)} seconds, each alone`}
      >
        {terms.map(({ lane, fromMs, toMs, token, id }) => (
          <rect
            key={token}
            class={`lane-${lane}`}
            x={x(fromMs)}
            y={0}
            width={Math.max(1, x(toMs) - x(fromMs))}
            height={20}
          >
            <title>{`token ${token}: ${id}`}</title>
          </rect>
        ))}
      </svg>
      <p class="axis quiet">
        <span>{Math.round(windowMs / 1000)} s ago</span>
        <span>now</span>
      </p>
      <pre>
        {at.lines.map(({ token, candidate, atMs }, index) => (
          <span key={index}>
            {`${(atMs / 1000).toFixed(3).padStart(9)} s  token ${token.padStart(2)}  ${candidate}\n`}
          </span>
        ))}
      </pre>
    </section>
  );
}
