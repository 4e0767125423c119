/**
 * The lock, broken on purpose. Each variant takes one thing away that a promise rests on, in the
 * core or in the ZooKeeper backend below it. See `../lease/variant-list.ts`.
 */
import type { Variant } from '../harness/mechanism.ts';
import type { lockGuarantees } from './guarantees.ts';

/** Two leaders, or what leads to two leaders. */
const s1 = ['belief', 'waiting', 'margin', 'fencing'] as const;

const store = 'backends/zookeeper/lock-store.js';
const reading = 'backends/zookeeper/lock-reading.js';
const session = 'backends/zookeeper/lock-session.js';

export const lockVariants: readonly Variant<keyof typeof lockGuarantees>[] = [
  {
    name: 'lock: belief extended by reads',
    edits: [
      {
        file: session,
        find: 'transaction.commit({ signal }),',
        replace: 'this.#client.get(paths[0], { signal }),',
      },
    ],
    from: 325,
    breaks: s1,
  },
  {
    name: 'lock: belief extended while pings are answered',
    edits: [
      {
        file: session,
        find: 'const there = [];',
        replace:
          "if (this.#client.state === 'connected') return { there: places, gone: [] };\n        const there = [];",
      },
      {
        file: session,
        find: "        if (committed.status === 'rejected') {",
        replace:
          "        if (committed.status === 'rejected' && this.#client.state !== 'connected') {",
      },
    ],
    breaks: [...s1, 'proof'],
  },
  {
    name: 'lock: whoever has a lock of that name taken for its maker',
    edits: [
      {
        file: session,
        find: '(isThat(read.value, place) ? there : gone).push(place);',
        replace: 'there.push(place);',
      },
    ],
    breaks: [...s1, 'proof'],
  },
  {
    name: 'lock: a refused confirmation taken for a good one',
    edits: [
      {
        file: session,
        find: 'return { there: [], gone: [missing] };',
        replace: 'return { there: places, gone: [] };',
      },
    ],
    from: 400,
    breaks: s1,
  },
  {
    name: 'lock: no wait after an unclean predecessor',
    edits: [
      {
        file: 'mechanisms/lock/memory.js',
        find: 'if (!waitsForPredecessor)',
        replace: 'if (true)',
      },
    ],
    breaks: s1,
  },
  {
    name: 'lock: own belief waited out instead of the record’s',
    edits: [
      {
        file: 'mechanisms/lock/memory.js',
        find: 'waitMs = record.beliefMs;',
        replace: 'waitMs = beliefMs;',
      },
    ],
    breaks: s1,
  },
  {
    name: 'lock: the wait without room for clocks that drift',
    edits: [
      {
        file: 'mechanisms/lock/memory.js',
        find: '(waitMs * (1 + clockDrift)) / (1 - clockDrift)',
        replace: 'waitMs + 0 * clockDrift',
      },
    ],
    from: 350,
    breaks: s1,
  },
  {
    name: 'lock: a predecessor known by its id and not by its incarnation',
    edits: [
      {
        file: 'mechanisms/lock/contender.js',
        find: 'const step = await this.#step();',
        replace:
          'this.#memory.id = this.#campaign.candidate.id;\n        const step = await this.#step();',
      },
      {
        file: 'mechanisms/lock/memory.js',
        find: 'holding !== undefined && !this.own.wrote(record)',
        replace: 'holding !== undefined && holding.candidate.id !== this.id',
      },
    ],
    from: 175,
    breaks: s1,
  },
  {
    name: 'lock: belief of a new term counted from the reply',
    edits: [
      {
        file: 'mechanisms/lock/contender.js',
        find: 'const { place, reading: found } = taken;',
        replace:
          'const { place, reading: found } = taken;\n        Object.assign(sentAt, readClocks(clock));',
      },
    ],
    breaks: [...s1, 'proof'],
  },
  {
    name: 'lock: an own lock whose reply was lost taken for another’s',
    edits: [
      {
        file: 'mechanisms/lock/contender.js',
        find: 'if (entry === undefined)\n            return this.#waitFor',
        replace: 'if (true)\n            return this.#waitFor',
      },
    ],
    breaks: ['leader', 'zombie'],
  },
  {
    name: 'lock: the record written without a check of the own lock',
    edits: [
      {
        file: store,
        find: '.check(this.nodes.lockPath)\n            .set',
        replace: '.check(this.nodes.path)\n            .set',
      },
      {
        file: store,
        find: 'if (lock.value === undefined || !isThat(lock.value, place))',
        replace: 'if (false)',
      },
    ],
    breaks: [...s1, 'place'],
  },
  {
    name: 'lock: an announcement not confirmed by a look behind it',
    edits: [
      {
        file: store,
        find: 'if (lock.value === undefined || !isThat(lock.value, place))',
        replace: 'if (lock.value === undefined)',
      },
    ],
    breaks: [...s1, 'place'],
  },
  {
    name: 'lock: the record written without a look at its version',
    edits: [
      {
        file: store,
        find: 'isWritten ? breadcrumb.mzxid : undefined), own);',
        replace: 'isWritten ? breadcrumb.mzxid : undefined), -1);',
      },
    ],
    breaks: [...s1, 'operator', 'ended', 'release', 'tokens', 'proclaimed', 'drain', 'kept'],
  },
  {
    name: 'lock: a clean end that leaves the breadcrumb',
    edits: [
      {
        file: store,
        find: 'transaction.delete(this.breadcrumbPath, breadcrumb.version);',
        replace: 'transaction.check(this.breadcrumbPath, breadcrumb.version);',
      },
    ],
    breaks: ['breadcrumb'],
  },
  {
    name: 'lock: a leader of another make forgotten',
    edits: [{ file: reading, find: 'if (belongs || isOfHolder)', replace: 'if (true)' }],
    breaks: [...s1, 'predecessor'],
  },
  {
    name: 'lock: a breadcrumb that is newer than the lock taken for its holder’s',
    edits: [
      {
        file: 'backends/zookeeper/lock-version.js',
        find: 'return breadcrumb.leader === place.token;',
        replace: 'return breadcrumb.leader !== undefined && breadcrumb.mzxid > place.token;',
      },
    ],
    from: 7_762,
    breaks: ['breadcrumb'],
  },
  {
    name: 'lock: announced again under the lock of another one',
    edits: [{ file: store, find: 'if (seen !== place.token)', replace: 'if (false)' }],
    from: 17_340,
    breaks: ['fencing', 'breadcrumb', 'place'],
  },
  {
    name: 'lock: an announcement of an earlier session that lands on a later lock',
    edits: [
      {
        file: 'mechanisms/queue/take-back.js',
        find: 'if (store.outdate !== undefined &&',
        replace: 'if (false &&',
      },
      { file: store, find: 'if (place.session !== this.session.id)', replace: 'if (false)' },
    ],
    from: 13_435,
    // The request that lands late may as well be the end of that session's place.
    breaks: ['place', 'others'],
  },
  {
    name: 'lock: one of theirs that becomes active late taken for a sign of another store',
    edits: [
      { file: 'mechanisms/lock/contender.js', find: 'if (!isTheirs ||', replace: 'if (true ||' },
    ],
    from: 4_180,
    breaks: ['errors'],
  },
  {
    name: 'lock: whoever left its breadcrumb taken for fenced',
    edits: [
      {
        file: reading,
        find: 'return { record, version, isTheirs, wasFenced: false,',
        replace: 'return { record, version, isTheirs, wasFenced: true,',
      },
    ],
    breaks: ['fencing'],
  },
  {
    name: 'lock: a lock deleted without a look whose it is',
    edits: [
      {
        file: 'backends/zookeeper/held-node.js',
        find: 'lock.stat.ephemeralOwner === this.session.id) {',
        replace: 'true) {',
      },
    ],
    breaks: ['others', 'stranger'],
  },
  {
    name: 'lock: a release without a look whose the lock is',
    edits: [
      {
        file: store,
        find: 'if (lock === undefined || !isThat(lock, place)) {\n                this.unclaim',
        replace: 'if (lock === undefined) {\n                this.unclaim',
      },
    ],
    breaks: ['others', 'release', 'kept'],
  },
  {
    name: 'lock: who withdraws keeps the lock',
    edits: [
      {
        file: 'mechanisms/lock/contender.js',
        find: 'if (!hasWon && entry !== undefined)',
        replace: 'if (false)',
      },
    ],
    breaks: ['leader', 'zombie'],
  },
  {
    name: 'lock: kept after an unclean end',
    edits: [
      {
        file: 'mechanisms/queue/seat.js',
        find: 'if (await (this.#left ?? this.#leftovers.leave(this.#entry, this.#place, this.#pending)))',
        replace: 'if (true)',
      },
    ],
    breaks: ['leader', 'zombie'],
  },
  {
    name: 'lock: two candidates on one client take the lock for their own',
    edits: [
      {
        file: session,
        find: 'return claim.guid === guid;',
        replace: 'this.#claims.set(path, { guid, session });',
      },
    ],
    breaks: [...s1, 'release', 'zombie', 'leader', 'truth', 'keeping', 'others'],
  },
  {
    name: 'lock: a free lock not noticed',
    edits: [
      {
        file: 'mechanisms/lock/contender.js',
        find: 'if (this.#watched === watched)',
        replace: 'if (false)',
      },
    ],
    breaks: ['leader'],
  },
  {
    name: 'lock: the end of an election ignored',
    edits: [
      {
        file: 'mechanisms/lock/contender.js',
        find: 'if (record?.ended === true)',
        replace: 'if (false)',
      },
      {
        file: 'mechanisms/queue/seat.js',
        find: 'return this.#record.ended || this.#drain',
        replace: 'return this.#drain',
      },
    ],
    from: 110,
    breaks: ['ended'],
  },
  {
    name: 'lock: a hand-over that is meant for one term hits a later one',
    edits: [
      {
        file: 'mechanisms/administer.js',
        find: 'first ??= { token, view };',
        replace: 'first = { token, view };',
      },
    ],
    breaks: ['meant'],
  },
  {
    name: 'lock: a request that was refused is called recorded',
    edits: [
      {
        file: 'mechanisms/administer.js',
        find: 'if (await next.write())\n                return { changed: true, ...seen, ...lifted };',
        replace: 'await next.write();\n            return { changed: true, ...seen, ...lifted };',
      },
    ],
    breaks: ['granted'],
  },
  {
    name: 'lock: a forced vacate calls the end clean',
    edits: [
      {
        file: 'record/transitions.js',
        find: 'return { ...record, holding: { ...holding, request, revoked: true, held: undefined } };',
        replace: 'return { ...record, holding: undefined };',
      },
    ],
    breaks: [...s1, 'operator'],
  },
  {
    name: 'lock: release before the work has settled',
    edits: [
      {
        file: 'core/term-machine.js',
        find: 'if (!through || !(settled || over))',
        replace: 'if (!through)',
      },
      {
        file: 'core/term-machine.js',
        find: "    if (settled) {\n        const next = { at: 'releasing'",
        replace: "    if (true) {\n        const next = { at: 'releasing'",
      },
    ],
    breaks: [...s1, 'release'],
  },
  {
    name: 'lock: an announcement says that the leader is ready',
    edits: [{ file: 'mechanisms/queue/announcement.js', find: 'ready: shown.ready,', replace: '' }],
    breaks: ['ready'],
  },
];
