import type { Snapshot } from 'incumbent';
import { look } from '../ask.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import type { StatusOptions } from '../options.ts';
import { candidateFields, isLedOnce, sinceOf, stateTone, tokenOf } from '../output/describe.ts';
import { painter } from '../output/style.ts';
import type { Cell } from '../output/table.ts';
import { fields } from '../output/table.ts';
import { toJson, visible } from '../output/text.ts';
import { isoTime, localTime, span } from '../output/time.ts';

export async function status(options: StatusOptions, context: Context): Promise<number> {
  const [snapshot, url] = await look(options, context, async ({ election, store, signal }) => [
    await election.inspect({ signal }),
    store.url,
  ]);
  if (options.json) {
    context.stdout.write(`${toJson(asJson(options.election, url, snapshot, Date.now()))}\n`);
  } else {
    const paint = painter(context.stdout, context.env);
    const entries = asFields(options.election, url, snapshot, Date.now());
    context.stdout.write(`${fields(entries, paint).join('\n')}\n`);
  }
  return options.exitCode && snapshot.view.state !== 'led' ? exitCodes.no : exitCodes.ok;
}

function asJson(election: string, store: string, snapshot: Snapshot, nowUnixMs: number): object {
  const { view, request } = snapshot;
  const reservation = currentReservation(snapshot, nowUnixMs);
  return {
    election,
    store,
    state: view.state,
    leader: view.leader ?? null,
    token: tokenOf(view),
    since: sinceOf(view),
    leaseMs: snapshot.leaseMs ?? null,
    holderGone: snapshot.holderGone,
    reservedUntil: reservation === undefined ? null : isoTime(reservation.untilUnixMs),
    reservedFor: reservation?.for ?? null,
    drains: snapshot.drains.map(({ id, untilUnixMs }) => ({ id, until: isoTime(untilUnixMs) })),
    request:
      request === undefined
        ? null
        : { kind: request.kind, ...(request.kind === 'transfer' ? { to: request.to } : {}) },
  };
}

/** Until when nobody, or only one candidate, may take the seat; one that is over counts no more. */
function currentReservation({ reservation }: Snapshot, nowUnixMs: number): Snapshot['reservation'] {
  return reservation !== undefined && reservation.untilUnixMs > nowUnixMs ? reservation : undefined;
}

export function asFields(
  election: string,
  store: string,
  snapshot: Snapshot,
  nowUnixMs: number,
): (readonly [string, readonly Cell[]])[] {
  const { view, request, history } = snapshot;
  const entries: [string, readonly Cell[]][] = [
    ['election', [{ text: visible(election) }]],
    ['store', [{ text: visible(store) }]],
    ['state', [{ text: explainState(snapshot), tone: stateTone(view.state) }]],
    ...candidateFields(view.leader),
  ];
  if (isLedOnce(view)) {
    const label = view.state === 'led' ? 'token' : 'last token';
    entries.push([label, [{ text: String(view.token) }]]);
  }
  // Of a vacancy that nobody saw begin, the beginning is not known.
  if (
    view.state === 'led' ||
    (view.state === 'vacant' && history.length > 0 && !snapshot.holderGone)
  ) {
    const ago = span(Math.max(0, nowUnixMs - view.sinceUnixMs));
    entries.push(['since', [{ text: `${localTime(view.sinceUnixMs)} (${ago})` }]]);
  }
  if (snapshot.leaseMs !== undefined) entries.push(['lease', [{ text: span(snapshot.leaseMs) }]]);
  const reservation = currentReservation(snapshot, nowUnixMs);
  if (reservation !== undefined) {
    const { untilUnixMs } = reservation;
    const whom = reservation.for === undefined ? '' : `for ${visible(reservation.for)} `;
    const more = span(untilUnixMs - nowUnixMs);
    const text = `${whom}until ${localTime(untilUnixMs)} (${more} more)`;
    entries.push(['reserved', [{ text, tone: 'warn' }]]);
  }
  if (request !== undefined) {
    const text =
      request.kind === 'transfer' ? `hand over to ${visible(request.to)}` : 'give the seat up';
    entries.push(['asked to', [{ text, tone: 'warn' }]]);
  }
  if (snapshot.drains.length > 0) {
    const drains = snapshot.drains.map(
      ({ id, untilUnixMs }): Cell => ({
        text: `${visible(id)} until ${localTime(untilUnixMs)} (${span(untilUnixMs - nowUnixMs)} more)`,
        tone: 'warn',
      }),
    );
    entries.push(['drained', drains]);
  }
  return entries;
}

function explainState({ view, holderGone, leaseMs }: Snapshot): string {
  switch (view.state) {
    case 'led':
    case 'unknown':
      return view.state;
    case 'ended':
      return 'ended (init --reopen opens it again)';
    case 'vacant':
      if (!isLedOnce(view)) return 'vacant (nobody has ever led it in this store)';
      if (holderGone) return 'vacant (the last leader is dead)';
      // A seat that is held but not announced.
      if (leaseMs !== undefined) return 'vacant (somebody is taking over)';
      return 'vacant';
    default:
      return view.state satisfies never;
  }
}
