/** Shards of a set, for people and for programs. */
import type { ShardsStatus } from '@incumbent/shards';
import type { Paint } from '../terminal/style.ts';
import type { Cell } from '../terminal/table.ts';
import { table } from '../terminal/table.ts';
import { visible } from '../terminal/text.ts';
import { isoTime, localTime } from '../terminal/time.ts';
import { span } from './span.ts';

/** So many shards are named one by one in a line. */
const mostNamed = 12;

export function asJson(seen: ShardsStatus, store: string): object {
  const { name, shards, isNamed, coordinator, members, unowned, moving, pins, drains } = seen;
  return {
    shards: name,
    store,
    count: shards,
    isNamed,
    names: seen.names ?? null,
    coordinator: coordinator ?? null,
    members: members.map((member) => ({
      id: member.id,
      slot: member.slot,
      addresses: member.addresses,
      weight: member.weight,
      zone: member.zone,
      joined: member.joined,
      drained: member.drained,
      owns: member.owns,
      moving: member.moving,
      since: isoTime(member.sinceUnixMs),
      shards: seen.ownedBy(member.slot),
    })),
    unowned,
    moving,
    pins: pins.map(({ shard, to }) => ({ shard, to, sleeps: isAsleep(seen, to) })),
    drains: drains.map(({ id, untilUnixMs }) => ({ id, until: isoTime(untilUnixMs) })),
    unreadable: seen.unreadable.map(({ slot, error }) => ({ slot, error: error.message })),
  };
}

/** The name of a shard where the store keeps it, else its number. */
export function labelOf({ names }: ShardsStatus, shard: string | number): string {
  return visible(names?.[Number(shard)] ?? String(shard));
}

/** All but the members, which have a table. */
export function asFields(
  seen: ShardsStatus,
  store: string,
  nowUnixMs: number,
): (readonly [string, readonly Cell[]])[] {
  const { name, shards, isNamed, names, coordinator, unowned, moving, pins, drains, unreadable } =
    seen;
  const entries: [string, readonly Cell[]][] = [
    [
      'shards',
      [
        {
          text: `${visible(name)}: ${shards}${isNamed && names === undefined ? ', by their numbers' : ''}`,
        },
      ],
    ],
    ['store', [{ text: visible(store) }]],
    [
      'coordinator',
      [
        coordinator === undefined
          ? { text: 'none now: nothing moves', tone: 'warn' }
          : { text: visible(coordinator) },
      ],
    ],
    [
      'no owner',
      [unowned.length === 0 ? { text: 'none' } : { text: someOf(seen, unowned), tone: 'bad' }],
    ],
  ];
  if (moving.length > 0) entries.push(['moving', [{ text: someOf(seen, moving), tone: 'warn' }]]);
  if (pins.length > 0) {
    const cells = pins.map(({ shard, to }): Cell => {
      const text = `${labelOf(seen, shard)} to ${visible(to)}`;
      return isAsleep(seen, to)
        ? { text: `${text} (sleeps: it takes no shards now)`, tone: 'warn' }
        : { text };
    });
    entries.push(['pinned', cells]);
  }
  if (drains.length > 0) {
    const cells = drains.map(({ id, untilUnixMs }): Cell => {
      const isForGood = untilUnixMs >= Date.UTC(9999, 0);
      const when = `until ${localTime(untilUnixMs)} (${span(untilUnixMs - nowUnixMs)} more)`;
      return { text: `${visible(id)} ${isForGood ? 'until undrain' : when}`, tone: 'warn' };
    });
    entries.push(['drained', cells]);
  }
  for (const { slot, error } of unreadable) {
    entries.push([
      'unreadable',
      [{ text: visible(`slot ${slot}: ${error.message}`), tone: 'bad' }],
    ]);
  }
  return entries;
}

export function memberTable(
  { members }: ShardsStatus,
  paint: Paint,
  width: number | undefined,
): readonly string[] {
  const sorted = [...members].sort((a, b) => (a.id < b.id ? -1 : 1) || a.slot - b.slot);
  return table(
    [
      { title: 'MEMBER' },
      { title: 'OWNS', align: 'right' },
      { title: 'MOVING', align: 'right' },
      { title: 'WEIGHT', align: 'right' },
      { title: 'ZONE' },
      { title: 'STATE' },
      { title: 'ADDRESSES' },
    ],
    sorted.map((member): readonly Cell[] => [
      { text: visible(member.id) },
      { text: String(member.owns) },
      { text: member.moving === 0 ? '' : String(member.moving) },
      { text: String(member.weight) },
      { text: visible(member.zone) },
      member.drained
        ? { text: 'drained', tone: 'warn' }
        : member.joined
          ? { text: 'member', tone: 'good' }
          : { text: 'joining', tone: 'cold' },
      { text: visible(member.addresses.join(' ')) },
    ]),
    paint,
    width,
  );
}

/** One change, on one line. */
export function asLine(seen: ShardsStatus | undefined, nowUnixMs: number, paint: Paint): string {
  const time = paint('faint', localTime(nowUnixMs));
  if (seen === undefined) return `${time}  there are no such shards (yet)`;
  const { members, unowned, moving } = seen;
  const owners = members
    .map(({ id, owns, drained }) => `${visible(id)} ${owns}${drained ? ' (drained)' : ''}`)
    .sort();
  const parts = [
    owners.length === 0 ? 'no members' : owners.join(', '),
    ...(unowned.length === 0 ? [] : [paint('bad', `no owner: ${someOf(seen, unowned)}`)]),
    ...(moving.length === 0 ? [] : [paint('warn', `moving: ${someOf(seen, moving)}`)]),
  ];
  return `${time}  ${parts.join('; ')}`;
}

/** How many, and the first of them. */
function someOf(seen: ShardsStatus, shards: readonly (string | number)[]): string {
  const named = shards.slice(0, mostNamed).map((shard) => labelOf(seen, shard));
  const more = shards.length > mostNamed ? ', …' : '';
  return `${shards.length} (${named.join(', ')}${more})`;
}

function isAsleep({ members }: ShardsStatus, id: string): boolean {
  return !members.some((member) => member.id === id && !member.drained);
}
