// One event after the other, and all effects of one event before the next.
import { describe, expect, it } from 'vitest';
import { firstSessionAt } from '../src/session/session-machine.ts';
import { SessionRunner } from '../src/session/session-runner.ts';
import type { SessionEvent, ShellEffect } from '../src/session/session-states.ts';

function run(carryOut: (effect: ShellEffect, runner: SessionRunner) => void = () => {}) {
  const did: string[] = [];
  const runner: SessionRunner = new SessionRunner(firstSessionAt('none'), false, {
    carryOut: (effect) => {
      did.push(effect.do === 'tell' ? `tell ${effect.state}` : effect.do);
      if (effect.do === 'introduce') runner.happen({ on: 'introduced', taken: true, watches: 0 });
      carryOut(effect, runner);
    },
    acted: () => {},
  });
  return { runner, did };
}

const granted = { on: 'granted', readOnly: false, isOurs: true } as const;
const over: SessionEvent = { on: 'over', error: new Error('over') };

function connect(runner: SessionRunner, answer: SessionEvent = granted): void {
  for (const event of [{ on: 'opening' }, { on: 'opened' }, answer] as const) runner.happen(event);
}

describe('what happens while something is done', () => {
  it('waits until all of that is done', () => {
    const { runner, did } = run((effect, of) => {
      if (effect.do === 'greet') of.happen(over);
    });
    connect(runner);
    // Handshake and introduction belong together.
    expect(did.slice(0, 2)).toEqual(['greet', 'introduce']);
  });

  it('is known to come, where it is the end: calls that are made meanwhile belong to the next session', () => {
    let seen: readonly boolean[] = [];
    const { runner } = run((effect, of) => {
      if (effect.do !== 'tell' || effect.state !== 'connected') return;
      const before = of.isOverNext;
      of.happen(over);
      seen = [before, of.isOverNext];
    });
    connect(runner);
    expect([...seen, runner.isOverNext]).toEqual([false, true, false]);
  });

  it('is no end to come where the client is closed already', () => {
    let seen: boolean | undefined;
    const { runner } = run((effect, of) => {
      if (effect.do !== 'tell' || effect.state !== 'closed') return;
      of.happen(over);
      seen = of.isOverNext;
    });
    connect(runner);
    runner.happen({ on: 'close-asked', keepSession: true });
    expect(seen).toBe(false);
  });
});

describe('a close in a listener of `read-only`', () => {
  it('is sent, and no server with a quorum is looked for: the search could cut the close off', () => {
    const { runner, did } = run((effect, of) => {
      if (effect.do !== 'tell' || effect.state !== 'read-only') return;
      of.happen({ on: 'close-asked', keepSession: false });
    });
    connect(runner, { ...granted, readOnly: true });
    expect(did.slice(did.indexOf('tell read-only'))).toEqual(['tell read-only', 'send-close']);
  });
});

describe('an effect that throws', () => {
  it('keeps none of the others from being done, and reaches the caller that made it happen', () => {
    const error = new Error('a listener of ours');
    const whole = run();
    connect(whole.runner);
    const { runner, did } = run((effect) => {
      if (effect.do === 'greet') throw error;
    });
    expect(() => connect(runner)).toThrow(error);
    // The rest is done by hand, because the loop above ended with the error.
    runner.happen(granted);
    expect(did).toEqual(whole.did);
    expect(runner.at).toEqual(whole.runner.at);
  });
});
