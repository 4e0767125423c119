/**
 * The queue, broken on purpose. Each variant takes one thing away that a promise rests on, in the
 * core or in the ZooKeeper backend below it. See `../lease/variant-list.ts`.
 */
import type { Variant } from '../harness/mechanism.ts';
import type { queueGuarantees } from './guarantees.ts';

/** Two leaders, or what leads to two leaders. */
const s1 = ['belief', 'waiting', 'margin', 'fencing'] as const;

export const queueVariants: readonly Variant<keyof typeof queueGuarantees>[] = [
  {
    name: 'queue: belief extended by reads',
    edits: [
      {
        file: 'backends/zookeeper/session.js',
        find: 'transaction.commit({ signal }),',
        replace: 'this.#client.get(places[0].name, { signal }),',
      },
    ],
    breaks: s1,
  },
  {
    name: 'queue: belief extended while pings are answered',
    edits: [
      {
        file: 'backends/zookeeper/session.js',
        find: 'transaction.commit({ signal }),',
        replace: "this.#client.state === 'connected' ? undefined : transaction.commit({ signal }),",
      },
    ],
    breaks: [...s1, 'revoked'],
  },
  {
    name: 'queue: belief by session arithmetic',
    edits: [
      {
        file: 'backends/zookeeper/index.js',
        find: 'return { sessionTimeoutMs };',
        replace: 'return { sessionTimeoutMs, tickTimeMs };',
      },
      {
        file: 'base/timing.js',
        find: 'const timing = {',
        replace:
          'const { tickTimeMs } = limits;\n' +
          '    const arithmetic = leaseMs - (renewEveryMs + tickTimeMs);\n' +
          '    const timing = {',
      },
      {
        file: 'base/timing.js',
        find: '        beliefMs,\n        stopMarginMs',
        replace:
          '        beliefMs: tickTimeMs === undefined ? beliefMs : Math.min(arithmetic, 0.66 * leaseMs),\n' +
          '        stopMarginMs',
      },
      {
        file: 'mechanisms/queue/memory.js',
        find: 'if (!waitsForPredecessor)',
        replace: 'if (true)',
      },
    ],
    breaks: s1,
  },
  {
    name: 'queue: no wait after an unclean predecessor',
    edits: [
      {
        file: 'mechanisms/queue/memory.js',
        find: 'if (!waitsForPredecessor)',
        replace: 'if (true)',
      },
    ],
    breaks: s1,
  },
  {
    name: 'queue: own belief waited out instead of the record’s',
    edits: [
      {
        file: 'mechanisms/queue/memory.js',
        find: 'record.beliefMs * stretch',
        replace: 'scope.timing.beliefMs * stretch',
      },
    ],
    breaks: s1,
  },
  {
    name: 'queue: the wait without room for clocks that drift',
    from: 130,
    edits: [
      {
        file: 'mechanisms/queue/memory.js',
        find: 'const stretch = (1 + clockDrift) / (1 - clockDrift);',
        replace: 'const stretch = 1 + 0 * clockDrift;',
      },
    ],
    breaks: s1,
  },
  {
    name: 'queue: the wait counted from before the response',
    from: 865,
    edits: [
      {
        file: 'mechanisms/queue/contender.js',
        find: "        const { reading, names } = await this.#ask('looking'",
        replace:
          '        const beforeMs = scope.clock.monotonicMs();\n' +
          "        const { reading, names } = await this.#ask('looking'",
      },
      {
        file: 'mechanisms/queue/contender.js',
        find: 'atMs: scope.clock.monotonicMs() }',
        replace: 'atMs: beforeMs }',
      },
    ],
    breaks: s1,
  },
  {
    name: 'queue: hooks before the predecessor’s belief is over',
    edits: [
      {
        file: 'core/campaign.js',
        find: 'await this.#waitIn(term, seat.waitBeforeAnnounceMs);',
        replace: '',
      },
      {
        file: 'core/campaign.js',
        find: 'await term.announce();',
        replace:
          'await this.#waitIn(term, seat.waitBeforeAnnounceMs);\n            await term.announce();',
      },
    ],
    breaks: s1,
  },
  {
    name: 'queue: the record written at the win, before the wait',
    edits: [
      {
        file: 'mechanisms/queue/contender.js',
        find: 'const state = waitMs > 0 ? { ...asked, announced: false } : asked;',
        replace: 'const state = asked;',
      },
    ],
    breaks: [...s1, 'settling'],
  },
  {
    name: 'queue: the record written without the check of the own place',
    edits: [
      {
        file: 'backends/zookeeper/store.js',
        find: '(transaction) => transaction.check(place.name)',
        replace: '() => { }',
      },
    ],
    breaks: [...s1, 'place', 'tokens', 'announced'],
  },
  {
    name: 'queue: the record written without a look at its version',
    edits: [
      {
        file: 'backends/zookeeper/store.js',
        find: 'transaction.set(this.#path, encodeQueueRecord(record), version);',
        replace: 'transaction.set(this.#path, encodeQueueRecord(record), -1);',
      },
    ],
    breaks: [...s1, 'operator', 'ended', 'release', 'tokens', 'proclaimed', 'drain', 'kept'],
  },
  {
    name: 'queue: a refused confirmation taken for a good one',
    edits: [
      {
        file: 'backends/zookeeper/session.js',
        find: 'return { there: [], gone: [missing] };',
        replace: 'return { there: places, gone: [] };',
      },
    ],
    breaks: s1,
  },
  {
    name: 'queue: a refused announcement taken for a good one',
    edits: [
      {
        file: 'backends/zookeeper/store.js',
        find: "if (refusal?.code === 'NO_NODE')\n                return { outcome: 'gone' };",
        replace:
          "if (refusal?.code === 'NO_NODE')\n                return { outcome: 'ok', version };",
      },
    ],
    breaks: [...s1, 'announced'],
  },
  {
    name: 'queue: trusting to be next when the one before has gone',
    edits: [
      {
        file: 'mechanisms/queue/contender.js',
        find: 'const index = look.names.indexOf(place.name);',
        replace: 'const index = line.isNext ? 0 : look.names.indexOf(place.name);',
      },
      {
        file: 'mechanisms/queue/contender.js',
        find: '                void watched.changed.then(() => {\n                    if (live)',
        replace:
          '                void watched.changed.then(() => {\n                    line.isNext = true;\n                    if (live)',
      },
    ],
    breaks: [...s1, 'place'],
  },
  {
    name: 'queue: the place of an old session adopted',
    edits: [
      {
        file: 'backends/zookeeper/store.js',
        find: 'content.stat.ephemeralOwner !== this.session.id',
        replace: 'false',
      },
      {
        file: 'backends/zookeeper/store.js',
        find: 'session: ephemeralOwner, recurs',
        replace: 'session: this.session.id, owner: ephemeralOwner, recurs',
      },
    ],
    breaks: ['place'],
  },
  {
    name: 'queue: no guid, so a lost reply leaves a place behind',
    edits: [
      {
        file: 'backends/zookeeper/store.js',
        find: 'if (this.#entered.includes(guid)) {',
        replace: 'if (false) {',
      },
    ],
    breaks: ['leader', 'zombie'],
  },
  {
    name: 'queue: a hand-over past a member that is not ours',
    from: 170,
    edits: [
      {
        file: 'mechanisms/queue/administer.js',
        find: 'if (foreign !== undefined) {',
        replace: 'if (false) {',
      },
    ],
    breaks: ['stranger'],
  },
  {
    name: 'queue: the leader watched instead of the predecessor',
    edits: [
      {
        file: 'mechanisms/queue/contender.js',
        find: 'this.#behind(line, place, look.names[index - 1])',
        replace: 'this.#behind(line, place, look.names[0])',
      },
    ],
    breaks: ['herd'],
  },
  {
    name: 'queue: release before the work has settled',
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
    name: 'queue: a clean end recorded though the work goes on',
    edits: [
      {
        file: 'core/term-machine.js',
        find: "    if (settled) {\n        const next = { at: 'releasing'",
        replace: "    if (true) {\n        const next = { at: 'releasing'",
      },
    ],
    breaks: ['release'],
  },
  {
    name: 'queue: a clean end recorded without giving the place back',
    edits: [
      {
        file: 'backends/zookeeper/store.js',
        find: 'transaction.delete(place.name)',
        replace: 'transaction.check(place.name)',
      },
    ],
    breaks: ['release'],
  },
  {
    name: 'queue: belief counted from the reply',
    from: 770,
    edits: [
      {
        file: 'mechanisms/queue/seat.js',
        find: "        this.#confirmedMs = sentAt.monotonicMs;\n        return { outcome: 'confirmed', sentAt, state };",
        replace:
          '        this.#confirmedMs = sentAt.monotonicMs;\n' +
          "        return { outcome: 'confirmed', sentAt: readClocks(this.#scope.clock), state };",
      },
    ],
    breaks: s1,
  },
  {
    name: 'queue: belief of a new term counted from the reply',
    from: 190,
    edits: [
      {
        file: 'mechanisms/queue/contender.js',
        find: 'return { sentAt, shown: next, version: result.version };',
        replace:
          'return { sentAt: readClocks(scope.clock), shown: next, version: result.version };',
      },
    ],
    breaks: [...s1, 'revoked'],
  },
  {
    name: 'queue: a confirmation of an old session counted',
    edits: [
      {
        file: 'backends/zookeeper/session.js',
        find: 'return this.id !== place.session;',
        replace: 'return false && this.id !== place.session;',
      },
    ],
    breaks: ['expired', 'place'],
  },
  {
    name: 'queue: the place kept after an unclean end',
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
    name: 'queue: places taken away one by one before the end is marked',
    edits: [
      {
        file: 'mechanisms/queue/administer.js',
        find: "if (request.kind === 'end' && isNothing)",
        replace:
          "if (request.kind === 'end')\n        await removeAll(store, [...waitingMembers(situation)].reverse(), ask);\n    if (request.kind === 'end' && isNothing)",
      },
    ],
    breaks: ['promoted'],
  },
  {
    name: 'queue: a forced vacate calls the end clean',
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
    name: 'queue: an end that was never recorded taken for a clean one',
    from: 160,
    edits: [
      {
        file: 'mechanisms/queue/memory.js',
        find: '!this.own.wrote(record)) {',
        replace: 'record.holding.candidate.id !== this.id) {',
      },
      {
        file: 'mechanisms/queue/contender.js',
        find: 'const waitMs = this.#memory.waitMs(',
        replace:
          'this.#memory.id = this.#campaign.candidate.id;\n        const waitMs = this.#memory.waitMs(',
      },
    ],
    breaks: s1,
  },
  {
    name: 'queue: a candidate with unsettled work enters again',
    edits: [
      {
        file: 'core/run-work.js',
        find: 'value = await work(term);',
        replace:
          'value = await Promise.race([work(term), term.left.then(() => Promise.reject(term.signal.reason))]);',
      },
    ],
    breaks: ['unsettled', 'overlap'],
  },
  {
    name: 'queue: who withdraws stays in the queue',
    edits: [
      {
        file: 'mechanisms/queue/contender.js',
        find: '        else\n            await this.#leave(this.#line);',
        replace: '',
      },
    ],
    breaks: ['leader', 'zombie'],
  },
  {
    name: 'queue: a leader that came between the two looks is not waited for',
    from: 540,
    edits: [
      {
        file: 'mechanisms/queue/seat.js',
        find: 'if (leaderPlaceIn(this.#store, before) !== leaderPlaceIn(this.#store, record)) {',
        replace: 'if (false) {',
      },
    ],
    breaks: [...s1, 'predecessor'],
  },
  {
    name: 'queue: drains ignored',
    // Seed 26 finds it by another guarantee: the hook runs for a successor that is drained and never led.
    from: 27,
    edits: [
      {
        file: 'mechanisms/queue/contender.js',
        find: 'if (drain === undefined)',
        replace: 'if (true)',
      },
    ],
    breaks: ['drain'],
  },
  {
    name: 'queue: the end of an election ignored',
    edits: [{ file: 'mechanisms/queue/contender.js', find: 'if (ended)', replace: 'if (false)' }],
    breaks: ['ended'],
  },
  {
    name: 'queue: a proof shared by a place that it does not cover',
    edits: [
      {
        file: 'mechanisms/queue/confirmations.js',
        find: 'const found = findings?.get(place);',
        replace: 'const found = findings?.get(place) ?? findings?.values().next().value;',
      },
      {
        file: 'mechanisms/queue/confirmations.js',
        find: '        if (found.there.has(place))\n            return proof.sentAt;\n        throw found.failed.get(place);',
        replace:
          '        if (found.failed.has(place))\n            throw found.failed.get(place);\n        return proof.sentAt;',
      },
    ],
    breaks: [...s1, 'proof'],
  },
  {
    name: 'queue: one place gone, and the others count as proved',
    edits: [
      {
        file: 'backends/zookeeper/session.js',
        find: 'return { there: [], gone: [missing] };',
        replace: 'return { there: places.filter((place) => place !== missing), gone: [missing] };',
      },
    ],
    breaks: [...s1, 'proof'],
  },
  {
    name: 'queue: one place gone, and every term of the session ends',
    from: 590,
    edits: [
      {
        file: 'backends/zookeeper/session.js',
        find: 'return { there: [], gone: [missing] };',
        replace: 'return { there: [], gone: places };',
      },
    ],
    breaks: ['truth'],
  },
  {
    name: 'queue: the place of a leader compared as its writer spells it',
    edits: [
      {
        file: 'mechanisms/queue/named-places.js',
        find: 'return place === undefined ? undefined : store.nameHere(place);',
        replace: 'return place;',
      },
    ],
    breaks: s1,
  },
  {
    name: 'queue: since when a leader is gone counted from the one before it',
    edits: [
      {
        file: 'mechanisms/queue/memory.js',
        find: 'else if (this.#gone?.token !== record.token) {',
        replace: 'else if (this.#gone === undefined) {',
      },
      {
        file: 'mechanisms/queue/memory.js',
        find: 'this.#gone?.token === record.token ? this.#gone.sinceMs : atMs',
        replace: 'this.#gone?.sinceMs ?? atMs',
      },
    ],
    breaks: s1,
  },
  {
    name: 'queue: a predecessor known by its id and not by its incarnation',
    edits: [
      {
        file: 'mechanisms/queue/contender.js',
        find: 'const unfenced = unfencedAfter(record, own.wrote(record));',
        replace:
          'const unfenced = unfencedAfter(record, record?.holding?.candidate.id === line.entry.candidate.id);',
      },
    ],
    breaks: ['fencing'],
  },
  {
    name: 'queue: a winner forgets who is drained',
    edits: [
      {
        file: 'mechanisms/queue/announcement.js',
        find: 'unfenced: [],\n        drains: keptDrains(base.drains, wallMs),',
        replace: 'unfenced: [],\n        drains: keptDrains([], wallMs),',
      },
    ],
    breaks: ['kept'],
  },
  {
    name: 'queue: a release that does not adopt what it finds',
    edits: [
      {
        file: 'mechanisms/queue/seat.js',
        find: "if (this.#adopt(reading) !== 'ours')\n                    this.#isNamed = false;",
        replace: 'this.#version = reading.version;',
      },
    ],
    breaks: ['kept', 'release'],
  },
  {
    name: 'queue: a request that is meant for one term hits a later one',
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
    name: 'queue: a request that was refused is called recorded',
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
    name: 'queue: a request that is found in the record is not delivered',
    edits: [
      {
        file: 'mechanisms/queue/seat.js',
        find: "        this.#deliver();\n        return 'ours';",
        replace: "        return 'ours';",
      },
    ],
    breaks: ['heard'],
  },
  {
    name: 'queue: an announcement says that the leader is ready',
    edits: [{ file: 'mechanisms/queue/announcement.js', find: 'ready: shown.ready,', replace: '' }],
    breaks: ['ready'],
  },
  {
    name: 'queue: a witness does not look whose seat it gives back',
    edits: [
      {
        file: 'mechanisms/give-back-for-dead.js',
        find: '!isSeatOf(leader, record)',
        replace: 'record.holding === undefined',
      },
    ],
    breaks: ['witness', 'waiting', 'belief'],
  },
  {
    name: 'queue: a witness writes the record, and leaves the place',
    edits: [
      {
        file: 'mechanisms/queue/give-back-for-dead.js',
        find: 'remove: place === undefined ? [] : [place]',
        replace: 'remove: []',
      },
    ],
    breaks: ['witness'],
  },
  {
    name: 'queue: a witness calls every end clean',
    edits: [
      {
        file: 'mechanisms/give-back-for-dead.js',
        find: 'releasedForDead(record, leader.hasWorkEnded, writing)',
        replace: 'releasedForDead(record, true, writing)',
      },
    ],
    breaks: ['fencing'],
  },
  {
    name: 'queue: a named successor is waited out for the belief of the one that named it',
    edits: [
      {
        file: 'mechanisms/queue/successor.js',
        find: '...{ token, place, beliefMs },',
        replace: '...{ token, place },',
      },
    ],
    breaks: s1,
  },
  {
    name: 'queue: a successor is named without a check of its place',
    edits: [
      {
        file: 'backends/zookeeper/succession.js',
        find: '.check(next.name, next.version)',
        replace: '',
      },
    ],
    breaks: [...s1, 'place', 'tokens'],
  },
  {
    name: 'queue: a refused naming taken for a good one',
    edits: [
      {
        file: 'backends/zookeeper/succession.js',
        find: "return { outcome: 'unfit' };",
        replace: "return { outcome: 'ok', version };",
      },
    ],
    breaks: ['leader', 'zombie', ...s1],
  },
  {
    name: 'queue: a leader names its successor, and keeps its place',
    edits: [
      {
        file: 'backends/zookeeper/succession.js',
        find: '.delete(place.name)\n            .check(next.name',
        replace: '.check(place.name)\n            .check(next.name',
      },
    ],
    breaks: ['release', 'place'],
  },
  {
    name: 'queue: a named successor believes from when it read its name',
    edits: [
      {
        file: 'mechanisms/queue/contender.js',
        find: 'const sentAt = young?.sentAt ??',
        replace: 'const sentAt = readClocks(scope.clock) ??',
      },
      {
        file: 'mechanisms/queue/contender.js',
        find: '...(young && { belief: young.belief })',
        replace: '',
      },
    ],
    breaks: [...s1, 'proof'],
  },
  {
    name: 'queue: a leader says that its successor is ready',
    edits: [
      {
        file: 'mechanisms/queue/successor.js',
        find: '...{ candidate, place, leaseMs, ready },',
        replace: '...{ candidate, place, leaseMs, ready: undefined },',
      },
    ],
    breaks: ['ready'],
  },
];
