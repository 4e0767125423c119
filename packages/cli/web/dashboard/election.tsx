import type { ShownCandidate, ShownElection } from '../../src/dashboard/shown.ts';
import { clockTime, span } from '../shared/words.ts';
import { useLease } from './lease.ts';
import { elections, nowUnixMs, page, stateOf, stores } from './model.ts';
import { WindowChoice, windowMs, windowWords } from './overview.tsx';
import type { Past } from './past.ts';
import { usePast } from './past.ts';
import { SteerButtons } from './steering.tsx';
import { isBadEnd, TermLine } from './term-line.tsx';

function Fact({
  name,
  children,
}: {
  readonly name: string;
  readonly children: preact.ComponentChildren;
}) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Facts({ shown }: { readonly shown: ShownElection }) {
  const { leader, token, sinceUnixMs, why, request, leaseMs } = shown;
  const { tone, words } = stateOf(shown);
  const now = nowUnixMs.value;
  return (
    <dl class="facts">
      <Fact name="State">
        <span class={`tone ${tone}`}>{words}</span>
      </Fact>
      {leader !== null && (
        <Fact name="Leader">
          <Candidate candidate={leader} />
        </Fact>
      )}
      {why !== null && <Fact name="Why">{why}</Fact>}
      {sinceUnixMs !== null && (
        <Fact name="Since">
          {clockTime(sinceUnixMs)} <span class="quiet">({span(now - sinceUnixMs)})</span>
        </Fact>
      )}
      {token !== null && <Fact name="Token">{token}</Fact>}
      {leaseMs !== null && (
        <Fact name="Lease">
          <Lease shown={shown} leaseMs={leaseMs} />
        </Fact>
      )}
      {request !== null && <Fact name="Asked to">{request}</Fact>}
    </dl>
  );
}

/** It counts down until the leader is heard from again. At its end another candidate may take the seat. */
function Lease({ shown, leaseMs }: { readonly shown: ShownElection; readonly leaseMs: number }) {
  const leftMs = useLease(shown);
  if (leftMs === undefined) return <>{leaseMs / 1000} s</>;
  const isLow = leftMs < leaseMs / 3;
  return (
    <>
      {leaseMs / 1000} s{' '}
      <span class={isLow ? 'tone bad' : 'quiet'}>
        ({span(Math.ceil(leftMs / 1000) * 1000)} left, if it is not renewed)
      </span>
      <span class={`left ${isLow ? 'low' : ''}`} aria-hidden="true">
        <span style={{ inlineSize: `${Math.min(100, (100 * leftMs) / leaseMs)}%` }} />
      </span>
    </>
  );
}

function Candidate({ candidate }: { readonly candidate: ShownCandidate }) {
  const { id, addresses, metadata } = candidate;
  return (
    <>
      <strong>{id}</strong>
      {addresses.map((address) => (
        <code key={address}> {address}</code>
      ))}
      {Object.entries(metadata).map(([name, value]) => (
        <small key={name} class="quiet">
          {' '}
          {name}={value}
        </small>
      ))}
    </>
  );
}

function Waiting({ shown }: { readonly shown: ShownElection }) {
  const { waiting, drains } = shown;
  return (
    <section aria-labelledby="waiting-title">
      <h2 id="waiting-title">Candidates that wait</h2>
      {waiting === null && <p class="quiet">This store does not tell who waits.</p>}
      {waiting?.length === 0 && <p class="quiet">Nobody waits.</p>}
      {waiting !== null && waiting.length > 0 && (
        <ol class="numbered">
          {waiting.map((candidate, at) => (
            <li key={`${at} ${candidate.id}`}>
              <Candidate candidate={candidate} />
            </li>
          ))}
        </ol>
      )}
      {drains.length > 0 && (
        <>
          <h3>Kept out by an operator</h3>
          <ul>
            {drains.map(({ id, untilUnixMs }) => (
              <li key={id}>
                <strong>{id}</strong> <span class="quiet">until {clockTime(untilUnixMs)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function Terms({ shown, past }: { readonly shown: ShownElection; readonly past: Past }) {
  const terms = page.value?.history === true ? past.terms : shown.history.toReversed();
  return (
    <section aria-labelledby="terms-title">
      <h2 id="terms-title">Terms before</h2>
      {past.error !== undefined && (
        <p class="quiet">The recorded history cannot be shown: {past.error}.</p>
      )}
      {terms.length === 0 ? (
        <p class="quiet">None is on record{past.words}.</p>
      ) : (
        <div class="scroll" tabIndex={0} role="group" aria-labelledby="terms-title">
          <table>
            <thead>
              <tr>
                <th scope="col">Token</th>
                <th scope="col">Leader</th>
                <th scope="col">From</th>
                <th scope="col">Lasted</th>
                <th scope="col">Ended</th>
              </tr>
            </thead>
            <tbody>
              {terms.map(({ token, id, fromUnixMs, toUnixMs, why }) => (
                <tr key={`${token} ${id}`}>
                  <td>{token}</td>
                  <td>{id}</td>
                  <td>{clockTime(fromUnixMs)}</td>
                  <td>{toUnixMs === null ? '' : span(toUnixMs - fromUnixMs)}</td>
                  <td class={why !== null && isBadEnd(why) ? 'tone bad' : ''}>{why ?? 'leads'}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {past.more !== undefined && (
            <p>
              <button type="button" onClick={past.more}>
                Show older terms
              </button>
            </p>
          )}
        </div>
      )}
    </section>
  );
}

export function ElectionPage({
  store,
  election,
}: {
  readonly store: number;
  readonly election: string;
}) {
  const shown = elections.value.find((each) => each.store === store && each.election === election);
  const past = usePast(store, election, shown);
  return (
    <section class="detail" aria-labelledby="election-title">
      <p>
        <a href="#/">← all elections</a>
      </p>
      <h1 id="election-title">{election}</h1>
      <p class="quiet">{stores.value[store]?.url}</p>
      {shown === undefined ? (
        <p class="banner">This store does not list such an election (any more).</p>
      ) : (
        <>
          <Facts shown={shown} />
          {page.value?.steering === true && <SteerButtons shown={shown} />}
          <div class="zoomed">
            <WindowChoice />
            <TermLine
              shown={past.lengthen(shown)}
              nowUnixMs={nowUnixMs.value}
              windowMs={windowMs.value}
            />
            <p class="axis quiet">
              <span>{windowWords()} ago</span>
              <span>now</span>
            </p>
          </div>
          <div class="columns">
            <Waiting shown={shown} />
            <Terms shown={shown} past={past} />
          </div>
        </>
      )}
    </section>
  );
}
