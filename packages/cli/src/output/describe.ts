/** Elections in words, for people. */
import type { CandidateInfo, View } from 'incumbent';
import type { Tone } from '../terminal/style.ts';
import type { Cell } from '../terminal/table.ts';
import { visible } from '../terminal/text.ts';
import { isoTime } from '../terminal/time.ts';

const tones = { led: 'good', vacant: 'warn', unknown: 'bad', ended: 'faint' } as const;

export function stateTone({ state, ready }: View): Tone {
  return ready === false ? 'warn' : tones[state];
}

/** Id, addresses and metadata of a leader, each where there is any. */
export function candidateFields(candidate: CandidateInfo | undefined): [string, readonly Cell[]][] {
  if (candidate === undefined) return [];
  const { id, addresses } = candidate;
  const entries: [string, readonly Cell[]][] = [
    ['leader', [{ text: visible(id), tone: 'strong' }]],
  ];
  if (addresses.length > 0) {
    entries.push(['address', addresses.map((address) => ({ text: visible(address) }))]);
  }
  const metadata = metadataWords(candidate);
  if (metadata.length > 0) entries.push(['metadata', metadata.map((text) => ({ text }))]);
  return entries;
}

/** `key=value` for each entry. */
export function metadataWords({ metadata }: CandidateInfo): string[] {
  return Object.entries(metadata).map(([key, value]) => `${visible(key)}=${visible(value)}`);
}

/** An operator's request can create a record before the first leader: then its token is 0. */
export function isLedOnce({ token }: View): boolean {
  return token !== undefined && token > 0n;
}

/** The token of a term; an operator's request alone makes a record with token 0. */
export function tokenOf(view: View): bigint | null {
  return isLedOnce(view) && view.token !== undefined ? view.token : null;
}

/** When that state began; null for an election that has never been led. */
export function sinceOf(view: View): string | null {
  return view.state === 'vacant' && !isLedOnce(view) ? null : isoTime(view.sinceUnixMs);
}

/** A view on one line, without its time. */
export function viewLine(view: View): string {
  const token = isLedOnce(view) ? `token ${view.token}` : '';
  switch (view.state) {
    case 'led': {
      if (view.leader === undefined) return token;
      const at = view.leader.addresses.map(visible).join(' ');
      const words = metadataWords(view.leader).join(' ');
      return [
        visible(view.leader.id),
        token,
        ...(view.ready === false ? ['not ready'] : []),
        ...(at ? [`at ${at}`] : []),
        ...(words ? [words] : []),
      ]
        .join('  ')
        .trimEnd();
    }
    case 'vacant':
    case 'ended':
      return token === '' ? 'no leader is on record' : `last ${token}`;
    case 'unknown':
      return visible(view.error?.message ?? 'the store cannot be read');
    default:
      return view.state satisfies never;
  }
}
