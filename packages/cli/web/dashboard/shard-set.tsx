/** One set of shards: its members, and a grid with a cell for each shard. */
import { useState } from 'preact/hooks';
import type { ShownGrid, ShownShardMember, ShownShards } from '../../src/dashboard/shown.ts';
import { clockTime, grouped, span } from '../shared/words.ts';
import { rangesOf, termOf, useGrid, wordsOfShard } from './grid.ts';
import { colourOf, nowUnixMs, shardSets, stores } from './model.ts';
import { ShardGrid } from './shard-grid.tsx';

/** More ranges than this are counted, not shown. */
const mostRanges = 200;
const mostPins = 20;

export function ShardSetPage({ store, name }: { readonly store: number; readonly name: string }) {
  const shown = shardSets.value.find((each) => each.store === store && each.name === name);
  return (
    <section class="detail" aria-labelledby="set-title">
      <p>
        <a href="#/shards">← all shards</a>
      </p>
      <div class="titled">
        <h1 id="set-title">{name}</h1>
        <p class="quiet">{stores.value[store]?.url}</p>
      </div>
      {shown === undefined ? (
        <p class="banner">This store does not list such shards (any more).</p>
      ) : (
        <SetDetail shown={shown} />
      )}
    </section>
  );
}

function SetDetail({ shown }: { readonly shown: ShownShards }) {
  const { name, shards, isNamed, error } = shown;
  const grid = useGrid(shown);
  const [slot, setSlot] = useState<number>();
  const [shard, setShard] = useState(0);
  const chosen = shown.members.some((member) => member.slot === slot) ? slot : undefined;
  const at = Math.min(shard, Math.max(0, shards - 1));
  return (
    <>
      {error !== null && (
        <p class="banner" role="alert">
          {error}. What is shown may be old.
        </p>
      )}
      <Facts shown={shown} />
      <Members shown={shown} slot={chosen} onSlot={setSlot} />
      {shards > 0 && (
        <section class="shards" aria-labelledby="grid-title">
          <div class="titled">
            <h2 id="grid-title">The shards</h2>
            <Legend />
          </div>
          {isNamed && (
            <p class="quiet">
              A number is the place of a name in the sorted list, from 0.
              {grid?.names === null && ' The store does not keep these names.'}
            </p>
          )}
          <Finder shown={shown} grid={grid} shard={at} onShard={setShard} />
          <Pins grid={grid} onShard={setShard} />
          <ShardGrid {...{ name, shards, grid, slot: chosen, shard: at, onShard: setShard }} />
          <AsText shown={shown} grid={grid} />
        </section>
      )}
    </>
  );
}

function Facts({ shown }: { readonly shown: ShownShards }) {
  const { shards, members, unowned, moving, pinned, coordinator } = shown;
  return (
    <dl class="facts">
      <Fact name="Shards">{grouped(shards)}</Fact>
      <Fact name="Members">{members.length}</Fact>
      <Fact name="Without an owner">
        <span class={`tone ${unowned > 0 ? 'bad' : 'good'}`}>{grouped(unowned)}</span>
      </Fact>
      <Fact name="Moving">
        <span class={moving > 0 ? 'tone warn' : ''}>{grouped(moving)}</span>
      </Fact>
      <Fact name="Pinned">{grouped(pinned)}</Fact>
      <Fact name="Coordinator">{coordinator ?? <span class="tone bad">none</span>}</Fact>
    </dl>
  );
}

function Fact({
  name,
  children,
}: {
  readonly name: string;
  readonly children: preact.ComponentChildren;
}) {
  return (
    <div class="fact" data-fact={name}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Members({
  shown,
  slot,
  onSlot,
}: {
  readonly shown: ShownShards;
  readonly slot: number | undefined;
  readonly onSlot: (slot: number | undefined) => void;
}) {
  const { members, shards } = shown;
  const hasZones = members.some(({ zone }) => zone !== '');
  return (
    <section aria-labelledby="members-title">
      <h2 id="members-title">Members</h2>
      {members.length === 0 ? (
        <p class="quiet">No process takes part.</p>
      ) : (
        <div class="scroll members" tabIndex={0} role="group" aria-labelledby="members-title">
          <table>
            <thead>
              <tr>
                <th scope="col">Member</th>
                <th scope="col" class="number">
                  Owns
                </th>
                <th scope="col" class="number">
                  Moving
                </th>
                <th scope="col" class="number">
                  Weight
                </th>
                {hasZones && <th scope="col">Zone</th>}
                <th scope="col">State</th>
                <th scope="col">Since</th>
              </tr>
            </thead>
            <tbody>
              {members.map((member) => (
                <tr key={member.slot} data-member={member.id}>
                  <th scope="row">
                    <button
                      type="button"
                      class="member"
                      aria-pressed={member.slot === slot}
                      title="Show its shards in the grid"
                      onClick={() => onSlot(member.slot === slot ? undefined : member.slot)}
                    >
                      <Swatch id={member.id} />
                      {member.id}
                    </button>
                    {member.addresses.map((address) => (
                      <code key={address}> {address}</code>
                    ))}
                  </th>
                  <td class="number">
                    {grouped(member.owns)}{' '}
                    <small class="quiet">{Math.round((100 * member.owns) / shards)} %</small>
                  </td>
                  <td class={`number ${member.moving > 0 ? 'tone warn' : ''}`}>
                    {grouped(member.moving)}
                  </td>
                  <td class="number">{member.weight}</td>
                  {hasZones && <td>{member.zone}</td>}
                  <td>
                    <MemberState member={member} />
                  </td>
                  <td title={clockTime(member.sinceUnixMs)}>
                    {span(nowUnixMs.value - member.sinceUnixMs)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function MemberState({ member }: { readonly member: ShownShardMember }) {
  if (member.drained) return <span class="tone warn">drained</span>;
  return member.joined ? <>takes part</> : <span class="quiet">joining</span>;
}

function Swatch({ id }: { readonly id: string }) {
  return (
    <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
      <rect class={`colour-${colourOf(id)}`} width="10" height="10" rx="1" />
    </svg>
  );
}

function Legend() {
  return (
    <ul class="legend quiet">
      <li>
        <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
          <rect class="colour-0" width="10" height="10" />
        </svg>
        owned, in the colour of its member
      </li>
      <li>
        <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
          <rect class="moves colour-0" x="1" y="1" width="8" height="8" />
        </svg>
        asked to move
      </li>
      <li>
        <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
          <path class="lack" d="M1 1H9V9H1ZM1 9L9 1" />
        </svg>
        without an owner
      </li>
    </ul>
  );
}

/** The shard that is looked at, and ways to another one. */
function Finder({
  shown,
  grid,
  shard,
  onShard,
}: {
  readonly shown: ShownShards;
  readonly grid: ShownGrid | undefined;
  readonly shard: number;
  readonly onShard: (shard: number) => void;
}) {
  const { shards, unowned } = shown;
  const next = () => {
    if (grid === undefined) return;
    const later = grid.cells.indexOf(-1, shard + 1);
    const found = later === -1 ? grid.cells.indexOf(-1) : later;
    if (found !== -1) onShard(found);
  };
  return (
    <div class="finder">
      <label>
        Shard{' '}
        <input
          type="number"
          min={0}
          max={shards - 1}
          value={shard}
          onInput={({ currentTarget }) => {
            const { valueAsNumber } = currentTarget;
            if (Number.isInteger(valueAsNumber) && valueAsNumber >= 0 && valueAsNumber < shards) {
              onShard(valueAsNumber);
            }
          }}
        />
      </label>
      {grid?.names != null && (
        <label>
          Name{' '}
          <input
            type="search"
            onInput={({ currentTarget }) => {
              const text = currentTarget.value.trim().toLowerCase();
              const found =
                grid.names?.findIndex((name) => name.toLowerCase().includes(text)) ?? -1;
              if (text !== '' && found !== -1) onShard(found);
            }}
          />
        </label>
      )}
      {unowned > 0 && (
        <button type="button" class="chip bad" onClick={next}>
          next without an owner
        </button>
      )}
      <p class="about">
        {termOf(grid, shard) && <Swatch id={termOf(grid, shard)?.id ?? ''} />}
        {wordsOfShard(grid, shard)}
      </p>
    </div>
  );
}

/** The shards that an operator wants at one member, each a way to its cell. */
function Pins({
  grid,
  onShard,
}: {
  readonly grid: ShownGrid | undefined;
  readonly onShard: (shard: number) => void;
}) {
  const pins = grid?.pins ?? [];
  if (pins.length === 0) return null;
  return (
    <p class="quiet">
      Pinned:{' '}
      {pins.slice(0, mostPins).map(({ shard, to }) => (
        <button key={shard} type="button" class="chip" onClick={() => onShard(shard)}>
          {grid?.names?.[shard] ?? shard} to {to}
        </button>
      ))}
      {pins.length > mostPins && ` and ${grouped(pins.length - mostPins)} more`}
    </p>
  );
}

function AsText({
  shown,
  grid,
}: {
  readonly shown: ShownShards;
  readonly grid: ShownGrid | undefined;
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>The same as text</summary>
      {isOpen && grid !== undefined && (
        <dl class="ranges">
          <dt>without an owner</dt>
          <dd>{rangesOf(shardsOf(grid, undefined), mostRanges) || 'none'}</dd>
          {shown.members.map(({ slot, id }) => (
            <div key={slot}>
              <dt>{id}</dt>
              <dd>{rangesOf(shardsOf(grid, slot), mostRanges) || 'none'}</dd>
            </div>
          ))}
        </dl>
      )}
    </details>
  );
}

function shardsOf(grid: ShownGrid, slot: number | undefined): readonly number[] {
  return [...grid.cells.keys()].filter((shard) => termOf(grid, shard)?.slot === slot);
}
