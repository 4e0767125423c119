/**
 * The library, broken on purpose: each variant takes one thing away that a promise rests on. The
 * simulation must find every one of them, else it has gone blind to that kind of mistake.
 */
import type { Variant } from '../harness/mechanism.ts';
import type { guarantees } from './guarantees.ts';

/** Two leaders, or what leads to two leaders. */
const s1 = ['belief', 'seat', 'lease', 'margin'] as const;

export const variants: readonly Variant<keyof typeof guarantees>[] = [
  {
    name: 'belief counted from the reply',
    from: 80,
    edits: [
      {
        file: 'mechanisms/lease/seat.js',
        find: "return { outcome: 'confirmed', sentAt, state };",
        replace: "return { outcome: 'confirmed', sentAt: readClocks(this.#scope.clock), state };",
      },
    ],
    breaks: s1,
  },
  {
    name: 'belief of a new term counted from the reply',
    from: 90,
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: "if (result?.outcome === 'ok')\n            return this.#won(pendingWin, next,",
        replace:
          "if (result?.outcome === 'ok') {\n            Object.assign(sentAt, readClocks(clock));" +
          '\n            pendingWin.belief = new Belief(clock, timing.beliefMs, sentAt);\n        }' +
          "\n        if (result?.outcome === 'ok')\n            return this.#won(pendingWin, next,",
      },
    ],
    breaks: s1,
  },
  {
    name: 'no read-back: a conflict taken for a win',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'const nonceIsOurs = reading.record?.nonce === next.nonce;',
        replace: 'const nonceIsOurs = true;',
      },
    ],
    breaks: [...s1, 'start', 'announced', 'tokens'],
  },
  {
    name: 'no read-back: an unknown outcome taken for a win',
    from: 5,
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: "this.#scope.onTrouble('writing as a candidate', error);",
        replace: 'return this.#won(pendingWin, next, sighting.version);',
      },
    ],
    breaks: [...s1, 'announced'],
  },
  {
    name: 'an unresolved renewal believed',
    edits: [
      {
        file: 'mechanisms/lease/seat.js',
        find: 'const result = await this.#swap(next, signal);',
        replace:
          "const result = await this.#swap(next, signal).catch(() => ({ outcome: 'ok', version: this.#version }));",
      },
    ],
    breaks: [...s1, 'announced', 'proclaimed'],
  },
  {
    name: 'belief from the last attempt instead of the one that landed',
    from: 180,
    edits: [
      {
        file: 'mechanisms/lease/seat.js',
        find: "return { outcome: 'confirmed', sentAt: found.sentAt, state: found.state };",
        replace: "return { outcome: 'confirmed', sentAt, state: found.state };",
      },
    ],
    breaks: s1,
  },
  {
    name: 'renewal by reading that nothing has changed',
    edits: [
      {
        file: 'mechanisms/lease/seat.js',
        find: 'const result = await this.#swap(next, signal);',
        replace:
          'const seen = await readStore(this.#store, this.#scope, signal);\n' +
          "            const result = seen.version === this.#version ? { outcome: 'ok', version: this.#version } : await this.#swap(next, signal);",
      },
    ],
    breaks: [...s1, 'announced', 'proclaimed'],
  },
  {
    name: 'wall clock only',
    edits: [
      {
        file: 'base/belief.js',
        find: 'return this.#countdown.look(readClocks(this.#clock));',
        replace:
          'const { wallMs } = this.#countdown.deadline ?? { wallMs: -Infinity };\n' +
          '        return wallMs - this.#clock.wallMs();',
      },
    ],
    breaks: s1,
  },
  {
    name: 'monotonic clock only',
    edits: [
      {
        file: 'base/belief.js',
        find: 'return this.#countdown.look(readClocks(this.#clock));',
        replace:
          'const { monotonicMs } = this.#countdown.deadline ?? { monotonicMs: -Infinity };\n' +
          '        return monotonicMs - this.#clock.monotonicMs();',
      },
    ],
    breaks: s1,
  },
  {
    name: 'a wall clock that was set back hides the suspension after it',
    edits: [
      {
        file: 'base/deadline.js',
        find: 'this.#wallEndMs = wallMs + leftMs;',
        replace: '',
      },
    ],
    breaks: s1,
  },
  {
    name: 'a wall clock that is set back hides the suspension before it',
    from: 20,
    edits: [
      {
        file: 'base/deadline.js',
        find: 'this.#endMs = nowMs + wallLeftMs;',
        replace: '',
      },
    ],
    breaks: s1,
  },
  {
    name: 'a confirmation that was under way forgets what a look has found lost',
    edits: [
      {
        file: 'base/deadline.js',
        find: 'this.#endMs = monotonicMs - moreMs;',
        replace: 'this.#endMs = monotonicMs;',
      },
    ],
    breaks: s1,
  },
  {
    name: 'no look at the clocks before a win is known',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'const won = { ...pendingWin, record, version };',
        replace:
          'const { clock, timing } = this.#scope;\n        const belief = new Belief(clock, timing.beliefMs, pendingWin.sentAt);\n' +
          '        const won = { ...pendingWin, belief, record, version };',
      },
    ],
    breaks: s1,
  },
  {
    name: 'a late reply revives a term',
    edits: [
      {
        file: 'base/belief.js',
        find: 'if (this.remainingMs() <= 0)',
        replace: 'if (this.#countdown.deadline === undefined)',
      },
    ],
    breaks: [...s1, 'revival'],
  },
  {
    name: 'own record known by the candidate’s name',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'const isLate = ',
        replace: 'const isLate = record.holding?.candidate.id === this.#candidate.id || ',
      },
    ],
    breaks: s1,
  },
  {
    name: 'own record known by its incarnation',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'const isLate = ',
        replace:
          'const isLate = record.holding?.candidate.incarnation === this.#candidate.incarnation || ',
      },
    ],
    breaks: s1,
  },
  {
    name: 'the term of a copy taken for an own one that is over',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'const wasOurs = this.#own.wrote(previous);',
        replace:
          'const wasOurs = previous?.holding?.candidate.incarnation === this.#candidate.incarnation;',
      },
    ],
    breaks: ['fencing', 'start'],
  },
  {
    name: 'own lease instead of the record’s',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'const leftMs = record.leaseMs - unchangedMs;',
        replace: 'const leftMs = timing.leaseMs - unchangedMs;',
      },
    ],
    breaks: s1,
  },
  {
    name: 'observation counted from before the read',
    edits: [
      {
        file: 'mechanisms/lease/reading.js',
        find: 'this.see(await readStore(this.#store, this.#scope, signal));',
        replace: 'this.see(await readStore(this.#store, this.#scope, signal), sentAtMs);',
      },
      {
        file: 'mechanisms/lease/reading.js',
        find: 'see(reading) {',
        replace: 'see(reading, atMs) {',
      },
      {
        file: 'mechanisms/lease/reading.js',
        find: 'const seenAtMs = this.#scope.clock.monotonicMs();',
        replace: 'const seenAtMs = atMs ?? this.#scope.clock.monotonicMs();',
      },
    ],
    breaks: s1,
  },
  {
    name: 'observation not begun anew by a renewal',
    edits: [
      {
        file: 'mechanisms/lease/reading.js',
        find: 'known.version === reading.version',
        replace: 'known.record?.token === reading.record?.token',
      },
    ],
    breaks: s1,
  },
  {
    name: 'the store’s clock trusted beyond its bound',
    edits: [
      {
        file: 'mechanisms/lease/reading.js',
        find: 'Math.max(0, ageMs - clockStepMs)',
        replace: 'Math.max(0, ageMs + 0 * clockStepMs)',
      },
    ],
    breaks: s1,
  },
  {
    name: 'a revoked seat treated as vacant',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'if (holding === undefined) {',
        replace: 'if (holding === undefined || holding.revoked) {',
      },
    ],
    breaks: s1,
  },
  {
    name: 'a forced vacate drops the holder',
    edits: [
      {
        file: 'record/transitions.js',
        find: 'return { ...record, holding: { ...holding, request, revoked: true, held: undefined } };',
        replace: 'return { ...record, holding: undefined };',
      },
    ],
    breaks: [...s1, 'operator', 'truth'],
  },
  {
    name: 'an operator’s write has the operator’s lease',
    edits: [
      {
        file: 'mechanisms/lease/administer.js',
        find: "return changed(asked(record, { kind: 'transfer', to, nonce: uniqueId() }));",
        replace:
          "return changed(asked({ ...record, leaseMs: timing.leaseMs }, { kind: 'transfer', to, nonce: uniqueId() }));",
      },
    ],
    breaks: [...s1, 'operator'],
  },
  {
    name: 'declared actors without the process that declares them',
    from: 120,
    edits: [
      {
        file: 'core/acting-processes.js',
        find: ': [{ pid: process.pid }, ...processes];',
        replace: ': [...processes];',
      },
    ],
    breaks: s1,
  },
  {
    name: 'a leader lists its process while hooks run',
    edits: [
      {
        file: 'core/campaign.js',
        find: "actors: announced && actors === 'self' && self !== undefined ? [self] : null,",
        replace: 'actors: self !== undefined ? [self] : null,',
      },
    ],
    breaks: s1,
  },
  {
    name: 'release before the work has settled',
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
    name: 'release while a hook still runs',
    edits: [
      {
        file: 'core/held-term.js',
        find: 'if (pending !== undefined) {',
        replace: 'if (false) {',
      },
    ],
    breaks: ['release', 'seat'],
  },
  {
    name: 'blind overwrite on release',
    edits: [
      {
        file: 'mechanisms/lease/seat.js',
        find: "if (found.kind === 'gone' || found.kind === 'theirs')",
        replace: "if (found.kind === 'gone')",
      },
    ],
    from: 20,
    // The record that it overwrites names the term that the next leader has to fence, and to wait
    // for.
    breaks: [...s1, 'release', 'fencing'],
  },
  {
    name: 'the seat is not given back',
    edits: [
      {
        file: 'core/held-term.js',
        find: 'void this.#release(effect.reason).then((released) => this.#hasLeft(released));',
        replace: 'this.#hasLeft(false);',
      },
    ],
    breaks: ['handback', 'leader'],
  },
  {
    name: 'token reset on release',
    edits: [
      {
        file: 'record/transitions.js',
        find: '        holding: undefined,\n        reservation: isOpen',
        replace: '        token: 0n,\n        holding: undefined,\n        reservation: isOpen',
      },
    ],
    breaks: ['tokens'],
  },
  {
    name: 'token kept by a takeover',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'token: this.#loss.nextToken,',
        replace: 'token: previous?.token || 1n,',
      },
    ],
    breaks: ['tokens', 'overlap', 'margin', 'announced'],
  },
  {
    name: 'tokens begin anew when somebody deletes the record',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'token: this.#loss.nextToken,',
        replace: 'token: (previous?.token ?? 0n) + 1n,',
      },
    ],
    breaks: ['tokens'],
  },
  {
    name: 'a lost record taken for a vacant seat',
    from: 400,
    edits: [
      {
        file: 'mechanisms/lease/loss.js',
        find: 'const sinceMs = Math.max(this.#lostSinceMs ?? -Infinity, this.#lifeSinceMs ?? -Infinity);',
        replace: 'const sinceMs = -Infinity;',
      },
    ],
    breaks: ['seat', 'belief'],
  },
  {
    name: 'a vacant seat that came back after a loss taken at once',
    from: 660,
    edits: [
      {
        file: 'mechanisms/lease/loss.js',
        find: 'this.#lifeSinceMs = forgets ? lifeSinceMs : undefined;',
        replace: '',
      },
    ],
    breaks: ['seat', 'belief'],
  },
  {
    name: 'a loss of the store that begins no new count',
    from: 905,
    edits: [
      {
        file: 'mechanisms/lease/reading.js',
        find: 'this.#sighting?.life === life ? this.#sighting : undefined',
        replace: 'this.#sighting',
      },
    ],
    breaks: ['seat', 'belief'],
  },
  {
    name: 'a candidate with unsettled work campaigns',
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
    name: 'work is told to stop only when belief has ended',
    edits: [
      {
        file: 'core/held-term.js',
        find: 'if (this.marginMs() <= 0) {',
        replace: 'if (this.#belief.remainingMs() <= 0) {',
      },
    ],
    breaks: ['stop'],
  },
  {
    name: 'work begins although belief is over',
    from: 570,
    edits: [
      {
        file: 'core/held-term.js',
        find: "if (this.marginMs() <= 0)\n            this.#on({ on: 'lost'",
        replace: "if (false)\n            this.#on({ on: 'lost'",
      },
    ],
    breaks: ['start'],
  },
  {
    name: 'hooks without a look at the clocks',
    edits: [
      {
        file: 'core/campaign.js',
        find: 'term.requireMargin();',
        replace: 'term.signal.throwIfAborted();',
      },
      { file: 'core/campaign.js', find: 'if (term.marginMs() <= 0) {', replace: 'if (false) {' },
    ],
    breaks: ['fencing'],
  },
  {
    name: 'announced before the record says so',
    edits: [
      {
        file: 'core/held-term.js',
        find: 'await this.#show({ ...this.#wanted.state, announced: true, actors });',
        replace:
          'void this.#show({ ...this.#wanted.state, announced: true, actors }).catch(() => {});',
      },
    ],
    breaks: ['announced'],
  },
  {
    name: 'hooks after the announcement',
    edits: [
      {
        file: 'core/campaign.js',
        find: 'await this.#fence(term, seat.unfenced);',
        replace: 'void this.#fence(term, seat.unfenced).catch(() => {});',
      },
    ],
    breaks: ['fencing'],
  },
  {
    name: 'a failed takeover forgets whom to fence',
    edits: [
      {
        file: 'record/transitions.js',
        find: 'unfenced: end.unfenced,',
        replace: 'unfenced: [],',
      },
    ],
    breaks: ['fencing'],
  },
  {
    name: 'a takeover from a holder that was never announced forgets whom to fence',
    edits: [
      {
        file: 'record/transitions.js',
        find: 'if (!hasLed(holding) || wasOurs)\n        return unfenced;',
        replace: 'if (!hasLed(holding) || wasOurs)\n        return [];',
      },
    ],
    breaks: ['fencing'],
  },
  {
    name: 'superseded ignored',
    from: 85,
    edits: [
      {
        file: 'mechanisms/lease/seat.js',
        find: "return { outcome: 'lost', reason: 'superseded' };",
        replace: "return { outcome: 'unresolved' };",
      },
    ],
    breaks: ['disowned'],
  },
  {
    name: 'a deleted record ignored',
    from: 100,
    edits: [
      {
        file: 'mechanisms/lease/seat.js',
        find: "return { outcome: 'lost', reason: 'record-gone' };",
        replace: "return { outcome: 'unresolved' };",
      },
    ],
    breaks: ['disowned'],
  },
  {
    name: 'a renewal without an answer is forgotten and looks like a successor’s',
    edits: [
      {
        file: 'mechanisms/lease/seat.js',
        find: 'this.#attempts.wrote(record);',
        replace: 'record.nonce === this.#record.nonce;',
      },
    ],
    breaks: ['truth', 'keeping'],
  },
  {
    name: 'followers write only to fail',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: "                shown = sighting;\n                    return { kind: 'wait', ms: decision.ms",
        replace:
          "                shown = sighting;\n                    await swapStore(this.#store, this.#scope, { version: sighting.version - 1, record: this.#winningRecord(sighting.record, [], [], candidacy.stateAtWin([])) }, signal).catch(() => {});\n                    return { kind: 'wait', ms: decision.ms",
      },
    ],
    breaks: ['futile', 'operations', 'late'],
  },
  {
    name: 'no pause after a failure',
    edits: [
      {
        file: 'core/backoff.js',
        find: 'return Math.min(ms, timing.pollEveryMs) * (0.5 + random() / 2);',
        replace: 'return 0 * ms * random();',
      },
    ],
    breaks: ['operations'],
  },
  {
    name: 'reservations ignored',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'if (reservation === undefined || reservation.for === this.#candidate.id)',
        replace: 'if (true)',
      },
    ],
    breaks: ['reservation'],
  },
  {
    name: 'drains ignored',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'if (drain !== undefined) {',
        replace: 'if (false) {',
      },
    ],
    breaks: ['drain'],
  },
  {
    name: 'the end of an election ignored',
    edits: [
      { file: 'mechanisms/lease/race.js', find: 'if (record?.ended)', replace: 'if (false)' },
    ],
    breaks: ['ended', 'kept'],
  },
  {
    name: 'proclaim resolves for an older write',
    edits: [
      {
        file: 'core/seat-keeper.js',
        find: 'if (confirmation.state === wanted.state)',
        replace: 'if (true)',
      },
    ],
    breaks: ['proclaimed', 'announced'],
  },
  {
    name: 'close does not wait for the seat',
    edits: [
      {
        file: 'core/election.js',
        find: 'await Promise.race([running.ended.promise, running.campaign.leave()]);',
        replace: '{}',
      },
    ],
    breaks: ['closed', 'settling'],
  },
  {
    name: 'a late write that an operator has revoked believed when it is read back',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'if (nonceIsOurs && reading.record?.holding?.revoked === false) {',
        replace: 'if (nonceIsOurs) {',
      },
    ],
    breaks: ['revoked', 'heard', 'seat', 'belief'],
  },
  {
    name: 'what is read back kept as it was sent',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'return this.#won(pendingWin, reading.record, reading.version);',
        replace: 'return this.#won(pendingWin, next, reading.version);',
      },
    ],
    breaks: ['kept'],
  },
  {
    name: 'a release that does not adopt what it finds',
    edits: [
      {
        file: 'mechanisms/lease/seat.js',
        find: 'this.#adopt(reading.record, reading.version);',
        replace: 'this.#version = reading.version;',
      },
    ],
    breaks: ['kept'],
  },
  {
    name: 'a renewal that does not adopt what it finds',
    edits: [
      {
        file: 'mechanisms/lease/seat.js',
        find: "case 'ours': {\n                    const record = reading.record;\n                    this.#adopt(record, reading.version);",
        replace:
          "case 'ours': {\n                    const record = reading.record;\n                    this.#version = reading.version;",
      },
    ],
    breaks: ['kept'],
  },
  {
    name: 'a winner forgets who is drained',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'drains: keptDrains(previous?.drains ?? [], wallMs),',
        replace: 'drains: keptDrains([], wallMs),',
      },
    ],
    breaks: ['kept'],
  },
  {
    name: 'a writer whose clock is ahead drops drains that still count for others',
    edits: [
      {
        file: 'record/record.js',
        find: 'untilUnixMs + drainKeptMs > wallMs',
        replace: 'untilUnixMs > wallMs',
      },
    ],
    breaks: ['kept'],
  },
  {
    name: 'a drain drops those of others',
    edits: [
      {
        file: 'record/transitions.js',
        find: 'const others = keptDrains(rest, wallMs,',
        replace: 'const others = keptDrains([], wallMs,',
      },
    ],
    breaks: ['kept'],
  },
  {
    name: 'a request that is meant for one term hits a later one',
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
    name: 'a request that was refused is called recorded',
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
    name: 'a request that is found at the win is not delivered',
    edits: [
      {
        file: 'mechanisms/lease/seat.js',
        find: '        });\n        this.#deliver();\n    }',
        replace: '        });\n    }',
      },
    ],
    breaks: ['heard'],
  },
  {
    name: 'a revocation is written over by a renewal',
    edits: [
      {
        file: 'mechanisms/lease/seat.js',
        find: 'revoked: holding?.revoked ?? false,',
        replace: 'revoked: false,',
      },
      {
        file: 'mechanisms/lease/seat.js',
        find: 'if (record.holding?.revoked === true)',
        replace: 'if (false)',
      },
    ],
    breaks: ['kept', 'revoked'],
  },
  {
    name: 'an aborted attempt that has landed is not taken back',
    edits: [
      {
        file: 'mechanisms/lease/late-writes.js',
        find: 'await swapStore(this.#store, this.#scope, swap, signal);',
        replace: "{ outcome: 'ok' };",
      },
    ],
    breaks: ['late'],
  },
  {
    name: 'nobody looks whether an aborted attempt has landed',
    edits: [
      {
        file: 'mechanisms/lease/late-writes.js',
        find: 'if (this.#attempts.length === 0)\n            return;',
        replace: 'return;',
      },
    ],
    breaks: ['late'],
  },
  {
    name: 'a withdrawal vacates the seat, whoever has it',
    edits: [
      {
        file: 'mechanisms/lease/late-writes.js',
        find: 'this.#attempts = this.#attempts.filter(({ nonce, on }) => nonce === record?.nonce || (on.version === version && on.life === life));',
        replace: '',
      },
    ],
    breaks: [...s1, 'release'],
  },
  {
    name: 'an attempt a tenth of a renewal interval too early',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'const leftMs = record.leaseMs - unchangedMs;',
        replace: 'const leftMs = record.leaseMs - 0.1 * timing.renewEveryMs - unchangedMs;',
      },
    ],
    breaks: s1,
  },
  {
    name: 'a hold is lifted although its holder may believe',
    edits: [
      {
        file: 'mechanisms/lease/administer.js',
        find: 'if (hold !== undefined && holderLeftMs <= 0) {',
        replace: 'if (hold !== undefined) {',
      },
    ],
    breaks: [...s1, 'truth', 'release'],
  },
  {
    name: 'a predecessor known by its id and not by its incarnation',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'const unfenced = unfencedAfter(previous, wasOurs);',
        replace:
          'const unfenced = unfencedAfter(previous, previous?.holding?.candidate.id === this.#candidate.id);',
      },
    ],
    breaks: ['fencing'],
  },
  {
    name: 'term: who has come to its margin is not told to stop',
    edits: [
      {
        file: 'core/term-machine.js',
        find: "case 'margin-over':\n            return lost(",
        replace: "case 'margin-over':\n            return state.announced ? same(state) : lost(",
      },
    ],
    breaks: ['stop'],
  },
  {
    name: 'term: a seat that was taken away is believed in',
    edits: [
      {
        file: 'core/term-machine.js',
        find: "return now === true || takesSeatAway(reason) || reason === 'election-ended';",
        replace: 'return now === true;',
      },
    ],
    breaks: ['disowned', ...s1],
  },
  {
    name: 'term: the seat is given back before belief ends',
    edits: [
      {
        file: 'core/term-machine.js',
        find: "const closing = [...before, { do: 'end-belief' },",
        replace: 'const closing = [...before,',
      },
    ],
    breaks: [...s1, 'revival', 'release'],
  },
  {
    name: 'term: the work is not told of its end',
    edits: [
      {
        file: 'core/term-machine.js',
        find: "        { do: 'stop-work', end },\n",
        replace: '',
      },
    ],
    breaks: ['stop', 'settling', 'leader'],
  },
  {
    name: 'term: a settled term is renewed on',
    edits: [
      {
        file: 'core/term-machine.js',
        find: "        case 'settled':\n        case 'waited-enough':\n            return lapse(",
        replace:
          "        case 'settled':\n            return same(state);\n        case 'waited-enough':\n            return lapse(",
      },
    ],
    breaks: ['settling', 'leader', 'handback'],
  },
  {
    name: 'record: a win that is taken back forgets whom to fence',
    edits: [
      {
        file: 'record/transitions.js',
        find: 'reservation,\n        unfenced: unfencedAfter(before, wasOurs),',
        replace: 'reservation,\n        unfenced: [],',
      },
    ],
    breaks: ['fencing'],
  },
  {
    name: 'record: a release drops the drains',
    edits: [
      {
        file: 'record/transitions.js',
        find: 'unfenced: end.unfenced,\n        drains: keptDrains(record.drains, wallMs),',
        replace: 'unfenced: end.unfenced,\n        drains: [],',
      },
    ],
    breaks: ['kept', 'drain'],
  },
  {
    name: 'record: an unclean leader is not to be fenced',
    edits: [
      {
        file: 'record/transitions.js',
        find: 'return [...unfenced, { ...holding.candidate, token }].slice(-unfencedLimit);',
        replace: 'return unfenced;',
      },
    ],
    breaks: ['fencing'],
  },
  {
    name: 'loop: who fails tries again at once',
    edits: [
      {
        file: 'mechanisms/contend.js',
        find: 'failures += 1;\n                pauseMs = backoffMs(scope, failures);\n            }\n            signal',
        replace: 'failures += 1;\n                pauseMs = 0;\n            }\n            signal',
      },
    ],
    breaks: ['operations'],
  },
  {
    name: 'loop: nobody waits after a look',
    edits: [
      {
        file: 'mechanisms/contend.js',
        find: 'pauseMs = verdict.ms;',
        replace: 'pauseMs = 0;',
      },
    ],
    breaks: ['operations'],
  },
  {
    name: 'the winning record says that the leader is ready',
    edits: [
      {
        file: 'mechanisms/lease/race.js',
        find: 'held,\n                ready,',
        replace: 'held,',
      },
    ],
    breaks: ['ready'],
  },
  {
    name: 'an operator’s look at the record takes readiness out of it',
    edits: [
      {
        file: 'record/lease-record.js',
        find: "ready: readReady(reader, holding['ready']),",
        replace: '',
      },
    ],
    breaks: ['ready'],
  },
  {
    name: 'a term counts as ready that has only proclaimed something',
    edits: [
      {
        file: 'core/held-term.js',
        find: '...checkProclamation(proclamation, wanted) }',
        replace: '...checkProclamation(proclamation, wanted), ready: undefined }',
      },
    ],
    breaks: ['ready'],
  },
  {
    name: 'a witness does not look whose seat it gives back',
    edits: [
      {
        file: 'mechanisms/give-back-for-dead.js',
        find: '!isSeatOf(leader, record)',
        replace: 'record.holding === undefined',
      },
    ],
    breaks: [...s1, 'witness'],
  },
  {
    name: 'a witness writes over whatever has come meanwhile',
    edits: [
      {
        file: 'mechanisms/give-back-for-dead.js',
        find: '!isSeatOf(leader, record)',
        replace: 'record.holding === undefined || (tries === 1 && !isSeatOf(leader, record))',
      },
    ],
    breaks: [...s1, 'witness', 'tokens'],
  },
  {
    name: 'a witness calls every end clean',
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
    name: 'a witness drops the leaders that have to be fenced',
    edits: [
      {
        file: 'record/transitions.js',
        find: 'if (!hasWorkEnded || !hasLed(holding)) {',
        replace:
          'record = { ...record, unfenced: [] };\n    if (!hasWorkEnded || !hasLed(holding)) {',
      },
    ],
    breaks: ['fencing'],
  },
];
