/** Every set of shards, as a row. */
import type { ShownShardMember, ShownShards } from '../../src/dashboard/shown.ts';
import { grouped } from '../shared/words.ts';
import { byName, colourOf, hrefOfShards, shardSets, stores } from './model.ts';

export function counted(count: number, one: string): string {
  return `${grouped(count)} ${one}${count === 1 ? '' : 's'}`;
}

/** For screen readers: another text only when somebody should know. */
export function wordsOf({ name, members, unowned }: ShownShards): string {
  const lack = unowned === 0 ? 'every shard has an owner' : 'there are shards without an owner';
  return `${name}: ${counted(members.length, 'member')}, ${lack}`;
}

export function ShardsPage() {
  const sets = shardSets.value.toSorted(
    (a, b) => byName.compare(a.name, b.name) || a.store - b.store,
  );
  return (
    <section class="detail" aria-labelledby="shards-title">
      <h1 id="shards-title">Shards</h1>
      {sets.length === 0 ? (
        <p class="quiet">These stores hold no shards yet.</p>
      ) : (
        <div class="table sets">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col" class="number">
                  Members
                </th>
                <th scope="col" class="number">
                  Shards
                </th>
                <th scope="col" class="number">
                  Owned
                </th>
                <th scope="col" class="number">
                  Without an owner
                </th>
                <th scope="col" class="number">
                  Moving
                </th>
                <th scope="col" class="shares">
                  Shares
                </th>
              </tr>
            </thead>
            <tbody>
              {sets.map((shown) => (
                <SetRow key={`${shown.store} ${shown.name}`} shown={shown} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function SetRow({ shown }: { readonly shown: ShownShards }) {
  const { store, name, members, shards, unowned, moving, error } = shown;
  return (
    <tr data-shards={name} class={unowned > 0 || error !== null ? 'lacks' : ''}>
      <th scope="row">
        <a href={hrefOfShards(shown)}>{name}</a>
        {stores.value.length > 1 && (
          <small class="quiet"> {stores.value[store]?.url.split(':', 1)[0]}</small>
        )}
        {error !== null && <small class="tone bad"> cannot be read</small>}
      </th>
      <td class="number" data-name="Members">
        {grouped(members.length)}
      </td>
      <td class="number" data-name="Shards">
        {grouped(shards)}
      </td>
      <td class="number" data-name="Owned">
        {grouped(shards - unowned)}
      </td>
      <td class={`number ${unowned > 0 ? 'tone bad' : ''}`} data-name="Without an owner">
        {grouped(unowned)}
      </td>
      <td class={`number ${moving > 0 ? 'tone warn' : ''}`} data-name="Moving">
        {grouped(moving)}
      </td>
      <td class="shares" data-name="Shares">
        <Shares shown={shown} />
      </td>
    </tr>
  );
}

const height = 20;

/** The members' shares as one bar; the rest of it has no owner. */
export function Shares({ shown }: { readonly shown: ShownShards }) {
  const { members, shards, unowned } = shown;
  let x = 0;
  const bars = members
    .filter(({ owns }) => owns > 0)
    .map((member) => {
      const from = x;
      x += (member.owns / shards) * 1_000;
      return { member, from, width: x - from };
    });
  return (
    <svg
      class="terms"
      viewBox={`0 0 1000 ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={members.map(shareOf).join(', ') || 'no members'}
    >
      {unowned > 0 && (
        <rect class="vacant" x={x} y={height / 2 - 2} width={1_000 - x} height={4}>
          <title>{counted(unowned, 'shard')} without an owner</title>
        </rect>
      )}
      {bars.map(({ member, from, width }) => (
        <rect
          key={member.slot}
          class={`share colour-${colourOf(member.id)}`}
          x={from}
          y={1}
          width={width}
          height={height - 2}
        >
          <title>{shareOf(member)}</title>
        </rect>
      ))}
    </svg>
  );
}

function shareOf({ id, owns }: ShownShardMember): string {
  return `${id} owns ${grouped(owns)}`;
}
