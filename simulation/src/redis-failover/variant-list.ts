import type { Variant } from '../harness/mechanism.ts';

const anyLoss: readonly string[] = ['kept'];

/** Managers and clients, broken on purpose. */
export const redisFailoverVariants: readonly Variant[] = [
  {
    name: 'redis-failover: views of clients are not waited for',
    edits: [
      {
        file: 'manager/fence.js',
        find: 'const since = world.revokedAtMs ?? world.nowMs();',
        replace: 'if (viewMs > 0) return; const since = world.revokedAtMs ?? world.nowMs();',
      },
    ],
    from: 1400,
    breaks: ['one', 'kept'],
  },
  {
    name: 'redis-failover: the replica that has the least is promoted',
    edits: [
      {
        file: 'manager/choose.js',
        find: "const isBroken = world.hooks.broken?.includes('any-replica') === true;",
        replace: 'const isBroken = true;',
      },
    ],
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: F1: a primary that was started again is the primary, whatever it has',
    edits: [
      {
        file: 'manager/decide.js',
        find: 'if (objection !== undefined)',
        replace: 'if (objection === null)',
      },
      {
        file: 'manager/reign.js',
        find: 'await this.#keepFromCopying(reigning, this.#known);',
        replace: ';',
      },
    ],
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: F2: a request takes a replica that is not connected, whatever it lacks',
    edits: [
      {
        file: 'manager/choose.js',
        find: "if (lacking === undefined || world.hooks.broken?.includes('any-replica'))",
        replace: 'if (has)',
      },
      {
        file: 'manager/move.js',
        find: 'if (includes(wanted, lineage, primary))',
        replace: 'if (wanted)',
      },
    ],
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: who comes back copies the primary, whatever it has',
    edits: [
      {
        file: 'manager/join.js',
        find: "if (isIncluded || world.rejoin === 'always') {",
        replace: 'if (node) {',
      },
    ],
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: a promoted node counts by the stream of before, whatever it has written',
    edits: [
      {
        file: 'manager/lineage.js',
        find: 'if (wasKnown && !(node.hasWritten && hasBegun)) {',
        replace: 'if (wasKnown) {',
      },
    ],
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: whoever is in a stream has all that was ever written in it',
    edits: [
      {
        file: 'manager/lineage.js',
        find: 'return position.offset <= (held.get(position.stream) ?? -1);',
        replace: 'return held.has(position.stream);',
      },
    ],
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: a move that was begun is not taken up again',
    edits: [
      {
        file: 'manager/reign.js',
        find: "return this.#move('unfinished', {});",
        replace: 'return undefined;',
      },
    ],
    breaks: ['live', 'kept'],
  },
  {
    name: 'redis-failover: a primary that is down is not replaced',
    edits: [
      {
        file: 'manager/decide.js',
        find: "return { do: 'move', reason: 'down' };",
        replace: "return { do: 'keep' };",
      },
    ],
    from: 510,
    breaks: ['live', 'kept'],
  },
  {
    name: 'redis-failover: A1: nobody looks for a primary that somebody else has made, nor at what it wrote',
    edits: [
      {
        file: 'manager/decide.js',
        find: 'if (target !== undefined)',
        replace: 'if (target === null)',
      },
      {
        file: 'manager/lineage.js',
        find: 'if (wasKnown && !(node.hasWritten && hasBegun)) {',
        replace: 'if (wasKnown) {',
      },
    ],
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: F3: only nodes are asked that most managers see',
    edits: [
      {
        file: 'manager/choose.js',
        find: 'const unseen = nodes.filter((node) => !available.includes(node));',
        replace: 'const unseen = [];',
      },
      {
        file: 'manager/choose.js',
        find: 'if (nowMs() - memory.waitsSinceMs >= patienceMs)',
        replace: 'if (memory)',
      },
    ],
    from: 4005,
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: F4: an empty primary is taken before the others have answered',
    edits: [
      {
        file: 'manager/decide.js',
        find: "if (own === 'nothing' && missing.length > 0)",
        replace: 'if (own === null)',
      },
      {
        file: 'manager/decide.js',
        find: 'return isWaitedFor ?',
        replace: 'return isWaitedFor === null ?',
      },
    ],
    from: 140,
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: nobody waits for who may have what the one that is chosen lacks',
    edits: [
      {
        file: 'manager/choose.js',
        find: 'if (nowMs() - memory.waitsSinceMs >= patienceMs)',
        replace: 'if (memory)',
      },
    ],
    from: 525,
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: a primary that answers is replaced before the next one has all it has written',
    edits: [
      {
        file: 'manager/choose.js',
        find: 'needed.push([former, stood]);',
        replace: ';',
      },
    ],
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: the primary of before is not kept from acknowledging',
    edits: [
      {
        file: 'manager/fence.js',
        find: 'const asked = await tryToStop(former, record, false, world);',
        replace: "const asked = { how: 'replica' };",
      },
    ],
    from: 630,
    breaks: ['one', 'kept'],
  },
  {
    name: 'redis-failover: nobody watches the primary of before while the next one is chosen',
    edits: [
      {
        file: 'manager/fence.js',
        find: 'while (!watch.signal.aborted && !world.signal.aborted)',
        replace: 'while (watch === undefined)',
      },
    ],
    from: 13880,
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: a replica that begins to read its files counts as emptied',
    edits: [
      {
        file: 'manager/lineage.js',
        find: 'linkOffset === 1 && !loading',
        replace: 'linkOffset === 1',
      },
    ],
    from: 2831,
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: at first sight replicas go on to copy a primary that may have lost its data',
    edits: [
      {
        file: 'manager/join.js',
        find: "if (!isFirstSight && positionOf(node, lineage).kind !== 'known')",
        replace: "if (positionOf(node, lineage).kind !== 'known')",
      },
    ],
    from: 2350,
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: a primary that was down at first sight is the one that comes back',
    edits: [
      {
        file: 'manager/lineage.js',
        find: 'if (record.runId === null)',
        replace: 'if (record.runId === null || record.runId === noProcess)',
      },
    ],
    from: 11037,
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: a manager whose list lacks the primary lets its nodes copy it',
    edits: [
      {
        file: 'manager/reign.js',
        find: 'if (says !== undefined) {',
        replace: 'if (says === null) {',
      },
      {
        file: 'manager/reign.js',
        find: 'this.#isLedByOthers() ? mostListMs : mostTroubleMs',
        replace: 'mostTroubleMs',
      },
    ],
    from: 12429,
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: who is set aside by a move that was not finished is passed over',
    edits: [
      {
        file: 'manager/choose.js',
        find: ' || isOfTerm(each)',
        replace: '',
      },
    ],
    from: 29484,
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: the nodes of the other lists are not asked',
    edits: [
      {
        file: 'manager/move-world.js',
        find: 'return [...nodes, ...others()];',
        replace: 'return [...nodes];',
      },
    ],
    from: 1,
    breaks: anyLoss,
  },
  {
    name: 'redis-failover: gem: our managers do not look for its lock',
    edits: [
      {
        file: 'manager/reign.js',
        find: 'await this.#expectNoRubyManagers();',
        replace: ';',
      },
    ],
    from: 51,
    breaks: ['one', 'kept', 'live', 'stable'],
  },
  {
    name: 'redis-failover: gem: our managers do not follow it where `nodes` differs from the record',
    edits: [
      {
        file: 'manager/reign.js',
        find: 'if (isMovedByGem)',
        replace: 'if (isMovedByGem === null)',
      },
    ],
    from: 355,
    breaks: ['one', 'kept', 'live', 'stable'],
  },
  {
    name: 'redis-failover: gem: our clients want the process on record also while it leads',
    edits: [
      {
        file: 'client/connection.js',
        find: 'if ((await isGemLeading?.()) === true)',
        replace: 'if (isGemLeading === null)',
      },
    ],
    breaks: ['live'],
  },
  {
    name: 'redis-failover: gem: its primary that is a replica now is left to an operator',
    edits: [
      {
        file: 'manager/discover.js',
        find: 'if (only === undefined)\n            return { primary: named, isUp: false };',
        replace:
          "if (only === undefined)\n            throw new TroubleError('NO_PRIMARY', named);",
      },
    ],
    from: 700,
    breaks: ['live'],
  },
];
