/**
 * When a view is confirmed, which listeners are called, and how its state is explained. A few
 * znodes play ZooKeeper, and the test can hold their answers back. The real one:
 * `test-integration/client-view.test.ts`. The rules of a view itself: `view.test.ts`.
 */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Bounds, TimeUp } from '../../src/client/bound.ts';
import type { Reign, ViewOptions } from '../../src/client/view.ts';
import { ViewFollower } from '../../src/client/view-follower.ts';
import { a, b, nodesText, paths, recordText } from '../support/client-world.ts';
import { FakeZooKeeper } from '../support/fake-zookeeper.ts';
import { atRest, HandClock, watch } from '../support/hand-clock.ts';

class Stage {
  readonly clock = new HandClock();
  readonly zk = new FakeZooKeeper(this.clock);
  readonly bounds = new Bounds(this.clock);
  readonly view: ViewFollower;

  constructor(options: Partial<ViewOptions> = {}, prepare: (zk: FakeZooKeeper) => void = () => {}) {
    prepare(this.zk);
    const all = { rubyViewMs: 9_000, safeMode: true, ...options };
    this.view = new ViewFollower(this.zk.client, paths, this.clock, all);
    onTestFinished(() => this.view.close());
  }

  /** `a` is the primary of term 1, and confirmed just now. */
  static async confirmed(options: Partial<ViewOptions> = {}): Promise<Stage> {
    const stage = new Stage(options);
    await stage.publish(1, a);
    return stage;
  }

  async publish(term: number, primary: string): Promise<void> {
    this.zk.write({
      [paths.primary]: recordText(term, primary),
      [paths.nodes]: nodesText(primary),
    });
    await atRest();
  }

  get reign(): Reign {
    return this.view.usable() as Reign;
  }

  /** When confirmations were sent, in ms after `sinceMs`. */
  sentSince(sinceMs: number): number[] {
    return this.zk.confirmations.map(({ sentMs }) => sentMs - sinceMs).filter((ms) => ms > 0);
  }

  bound(ms = 100_000) {
    return this.bounds.begin(ms, undefined);
  }
}

describe('a view is confirmed', () => {
  test('as soon as both znodes name one primary, by the versions that were read', async () => {
    const { zk, view } = new Stage();
    await zk.put({ [paths.primary]: recordText(1, a) });
    expect(zk.confirmations).toEqual([]);
    expect(view.usable()).toBe(undefined);
    await zk.put({ [paths.primary]: recordText(1, a), [paths.nodes]: nodesText(a) });
    expect(zk.lastConfirmation.checks).toEqual([
      { path: '/set/nodes', version: 0 },
      { path: '/set/primary', version: 1 },
    ]);
    expect(view.usable()).toMatchObject({ term: 1, primary: a });
  });

  test('under Ruby managers by the version of nodes alone, and it holds for their time', async () => {
    const { zk, view, clock } = new Stage({ rubyViewMs: 9_000 });
    await zk.put({ [paths.nodes]: nodesText(a) });
    expect(zk.confirmations.map(({ checks }) => checks)).toEqual([
      [{ path: '/set/nodes', version: 0 }],
    ]);
    zk.confirmsAtOnce = false;
    await clock.pass(8_999);
    expect(view.usable()).toMatchObject({ term: undefined, primary: a });
    await clock.pass(1);
    expect(view.usable()).toBe(undefined);
  });

  test('every third of a view, counted from when the last confirmation was sent', async () => {
    const { zk, clock } = await Stage.confirmed();
    await clock.pass(1_000);
    const times = zk.confirmations.map(({ sentMs }) => sentMs - 5_000);
    expect(times).toEqual([0, 300, 600, 900]);
    zk.confirmsAtOnce = false;
    await clock.pass(200);
    await clock.pass(100);
    zk.lastConfirmation.answer();
    await atRest();
    await clock.pass(199);
    expect(zk.confirmations).toHaveLength(5);
    await clock.pass(1);
    expect(zk.confirmations).toHaveLength(6);
  });

  test('one at a time', async () => {
    const { zk, clock, view } = await Stage.confirmed();
    zk.confirmsAtOnce = false;
    await clock.pass(300);
    expect(zk.confirmations).toHaveLength(2);
    view.expectConfirmation(clock.monotonicMs() + 1);
    await clock.pass(5_000);
    expect(zk.confirmations).toHaveLength(2);
  });

  test('at once if a reply waits for it, but no two within 20 ms', async () => {
    const stage = await Stage.confirmed();
    const { clock, view } = stage;
    const startMs = clock.monotonicMs();
    await clock.pass(5);
    view.expectConfirmation(clock.monotonicMs());
    await clock.pass(20);
    expect(stage.sentSince(startMs)).toEqual([20]);
    await clock.pass(95);
    view.expectConfirmation(clock.monotonicMs());
    await atRest();
    expect(stage.sentSince(startMs)).toEqual([20, 120]);
    // No reply waits any more.
    await clock.pass(299);
    expect(stage.sentSince(startMs)).toEqual([20, 120]);
    await clock.pass(1);
    expect(stage.sentSince(startMs)).toEqual([20, 120, 420]);
  });

  test('not earlier where what is waited for has been confirmed already', async () => {
    const stage = await Stage.confirmed();
    const startMs = stage.clock.monotonicMs();
    stage.view.expectConfirmation(startMs - 1);
    stage.view.expectConfirmation(startMs);
    await stage.clock.pass(299);
    expect(stage.sentSince(startMs)).toEqual([]);
  });

  test('for the latest reply that waits', async () => {
    const stage = await Stage.confirmed();
    const { clock, view } = stage;
    const startMs = clock.monotonicMs();
    await clock.pass(100);
    view.expectConfirmation(clock.monotonicMs() + 50);
    view.expectConfirmation(startMs);
    await clock.pass(60);
    // The first confirmation was sent too early for it, so another one follows, until one was sent
    // after it.
    expect(stage.sentSince(startMs)).toEqual([100, 120, 140, 160]);
    await clock.pass(100);
    expect(stage.sentSince(startMs)).toEqual([100, 120, 140, 160]);
  });

  test('anew at once when the answer came after the view was over', async () => {
    const stage = await Stage.confirmed();
    const { clock, zk, view } = stage;
    zk.confirmsAtOnce = false;
    await clock.pass(1_300);
    expect(zk.confirmations).toHaveLength(2);
    zk.lastConfirmation.answer();
    await atRest();
    expect(view.usable()).toBe(undefined);
    expect(zk.confirmations).toHaveLength(3);
    zk.lastConfirmation.answer();
    await atRest();
    expect(view.usable()).toBe(stage.view.reign);
  });

  test('again after longer and longer pauses when it fails, from the failure on', async () => {
    const stage = await Stage.confirmed();
    const { clock, zk } = stage;
    zk.confirmsAtOnce = false;
    const failedMs: number[] = [];
    await clock.pass(300);
    for (let times = 0; times < 14; times += 1) {
      const { length } = zk.confirmations;
      await clock.pass(7);
      zk.lastConfirmation.fail(new Error('gone'));
      failedMs.push(clock.monotonicMs());
      await atRest();
      while (zk.confirmations.length === length) await clock.pass(1);
    }
    const pauses = failedMs.map((ms, at) => (zk.confirmations[at + 2]?.sentMs as number) - ms);
    expect(pauses).toEqual([20, 40, 80, 160, 320, 500, 500, 500, 500, 500, 500, 500, 500, 500]);
    // After a success the pauses begin again with the shortest.
    zk.lastConfirmation.answer();
    await clock.pass(20);
    zk.lastConfirmation.answer();
    await clock.pass(300);
    const before = zk.confirmations.length;
    zk.lastConfirmation.fail(new Error('gone'));
    await clock.pass(20);
    expect(zk.confirmations).toHaveLength(before + 1);
  });

  test('at once where something else is to be confirmed than what failed', async () => {
    const stage = await Stage.confirmed();
    const { clock, zk, view } = stage;
    zk.confirmsAtOnce = false;
    await clock.pass(300);
    for (const ms of [20, 40, 80, 160]) {
      zk.lastConfirmation.fail(new Error('gone'));
      await clock.pass(ms);
    }
    zk.lastConfirmation.fail(new Error('gone'));
    await clock.pass(10);
    zk.confirmsAtOnce = true;
    await stage.publish(2, b);
    expect(view.usable()).toMatchObject({ term: 2, primary: b });
    // Earlier failures do not count for it.
    zk.confirmsAtOnce = false;
    await clock.pass(300);
    zk.lastConfirmation.fail(new Error('gone'));
    const before = zk.confirmations.length;
    await clock.pass(20);
    expect(zk.confirmations).toHaveLength(before + 1);
  });

  test('the failures of one proposal are not those of the next', async () => {
    const stage = await Stage.confirmed();
    const { clock, zk } = stage;
    zk.confirmsAtOnce = false;
    await clock.pass(300);
    for (const ms of [20, 40]) {
      zk.lastConfirmation.fail(new Error('gone'));
      await clock.pass(ms);
    }
    await stage.publish(2, b);
    zk.lastConfirmation.fail(new Error('gone'));
    await clock.pass(0);
    const before = zk.confirmations.length;
    zk.lastConfirmation.fail(new Error('gone'));
    await clock.pass(19);
    expect(zk.confirmations).toHaveLength(before);
    await clock.pass(1);
    expect(zk.confirmations).toHaveLength(before + 1);
  });

  test('at once for another primary, however short ago the last was confirmed, but not within 20 ms', async () => {
    const stage = await Stage.confirmed();
    const { clock, zk, view } = stage;
    await clock.pass(50);
    await stage.publish(2, b);
    expect(view.usable()).toMatchObject({ term: 2, primary: b });
    await clock.pass(5);
    await stage.publish(3, a);
    const { length } = zk.confirmations;
    await clock.pass(14);
    expect(zk.confirmations).toHaveLength(length);
    await clock.pass(1);
    expect(view.usable()).toMatchObject({ term: 3, primary: a });
  });

  test('not of versions that are old: the news of the others is waited for', async () => {
    const stage = await Stage.confirmed();
    const { clock, zk, view } = stage;
    zk.confirmsAtOnce = false;
    await clock.pass(300);
    await stage.publish(2, b);
    zk.confirmations[1]?.answer();
    await atRest();
    expect(view.usable()).toBe(undefined);
  });

  test('not while the primary moves, and again when there is one', async () => {
    const stage = await Stage.confirmed();
    const { clock, zk, view } = stage;
    await stage.zk.remove(paths.nodes);
    const { length } = zk.confirmations;
    await clock.pass(5_000);
    expect(zk.confirmations).toHaveLength(length);
    expect(view.reign).toBe(undefined);
    await stage.publish(2, b);
    expect(view.usable()).toMatchObject({ term: 2, primary: b });
  });
});

describe('the clocks are looked at', () => {
  test('so often that a suspension and a clock set back are both seen, also without ZooKeeper', async () => {
    const { clock, zk, view } = await Stage.confirmed();
    zk.confirmsAtOnce = false;
    await clock.pass(400);
    clock.suspend(2_000);
    await clock.pass(250);
    clock.suspend(-2_000);
    expect(view.usable()).toBe(undefined);
  });

  test('by one timer, as long as a view holds', async () => {
    const { clock, zk } = await Stage.confirmed();
    for (let thirds = 0; thirds < 6; thirds += 1) {
      await clock.pass(300);
      // One timer for the next look, one for the next confirmation.
      expect(clock.timers).toBe(2);
      expect(clock.due.every((ms) => ms <= 300)).toBe(true);
    }
    zk.confirmsAtOnce = false;
    await clock.pass(500);
    expect(clock.timers).toBe(1);
    await clock.pass(2_000);
    expect(clock.timers).toBe(0);
    zk.confirmsAtOnce = true;
    zk.lastConfirmation.answer();
    await atRest();
    expect(clock.timers).toBe(2);
  });
});

describe('a caller that waits for a primary', () => {
  test('has it when it is confirmed', async () => {
    const { zk, view, bounds } = new Stage();
    zk.confirmsAtOnce = false;
    const waiting = watch(view.waitUntilUsable(bounds.begin(1_000, undefined)));
    await zk.put({ [paths.primary]: recordText(1, a), [paths.nodes]: nodesText(a) });
    expect(waiting.now.state).toBe('pending');
    zk.lastConfirmation.answer();
    await atRest();
    expect(waiting.now).toMatchObject({ value: { term: 1, primary: a } });
  });

  test('waits until its time is over, and leaves nothing behind', async () => {
    const { view, clock, bounds } = new Stage();
    const waiting = watch(view.waitUntilUsable(bounds.begin(1_000, undefined)));
    await clock.pass(999);
    expect(waiting.now.state).toBe('pending');
    await clock.pass(1);
    expect(waiting.now).toMatchObject({ error: expect.any(TimeUp) });
    const look = vi.fn();
    const bound = bounds.begin(1_000, undefined);
    await clock.pass(1_000);
    const late = watch(view.until(look, bound));
    await atRest();
    expect(late.now).toMatchObject({ error: expect.any(TimeUp) });
    await new Stage().zk.become('connected');
    expect(look).toHaveBeenCalledTimes(1);
  });

  test('is told at once what ZooKeeper refuses for good', async () => {
    const refusal = new Error('NO_AUTH');
    const stage = new Stage({}, (zk) => {
      zk.instead.set(`follow ${paths.nodes}`, () => {
        throw refusal;
      });
    });
    await expect(stage.view.waitUntilUsable(stage.bound())).rejects.toBe(refusal);
    await expect(stage.view.waitUntilRead(stage.bound())).rejects.toBe(refusal);
    expect(stage.view.trouble).toBe(refusal);
    expect(stage.view.explain()).toBe('ZooKeeper says: NO_AUTH');
  });

  test('is told of it also when it waits already', async () => {
    const refusal = new Error('NO_AUTH');
    const stage = new Stage();
    const waiting = watch(stage.view.waitUntilUsable(stage.bound()));
    await atRest();
    stage.zk.instead.set(`follow ${paths.nodes}`, () => {
      throw refusal;
    });
    stage.zk.wake();
    await atRest();
    expect(waiting.now).toEqual({ state: 'rejected', error: refusal });
  });

  test('is asked no more once it has it', async () => {
    const stage = await Stage.confirmed();
    let looks = 0;
    const bound = stage.bound();
    const waiting = watch(
      stage.view.until(() => {
        looks += 1;
        return looks < 2 ? undefined : looks;
      }, bound),
    );
    await stage.zk.become('suspended');
    expect(waiting.now).toEqual({ state: 'resolved', value: 2 });
    await stage.zk.become('connected');
    expect(looks).toBe(2);
    bound.end(new Error('over'));
    expect(looks).toBe(2);
  });

  test('does not stay with its bound when it has it', async () => {
    const stage = await Stage.confirmed();
    const bound = stage.bound();
    const forgets = vi.fn();
    const { onOver } = bound;
    bound.onOver = (listener) => {
      const forget = onOver.call(bound, listener);
      return () => {
        forgets();
        return forget();
      };
    };
    let looks = 0;
    const waiting = stage.view.until(() => {
      looks += 1;
      return looks < 2 ? undefined : true;
    }, bound);
    await stage.zk.become('suspended');
    await waiting;
    expect(forgets).toHaveBeenCalledTimes(1);
  });

  test('in the moment in which it has it, is not asked a second time', async () => {
    const stage = await Stage.confirmed();
    const look = vi.fn(() => 1);
    await stage.view.until(look, stage.bound());
    await stage.zk.become('suspended');
    expect(look).toHaveBeenCalledTimes(1);
  });
});

describe('that both znodes have been read', () => {
  test('is so also when neither is there', async () => {
    const stage = new Stage();
    const waiting = watch(stage.view.waitUntilRead(stage.bound()));
    expect(waiting.now.state).toBe('pending');
    await atRest();
    expect(waiting.now.state).toBe('resolved');
  });

  test('is not so after one', async () => {
    let open = () => {};
    const stage = new Stage({}, (zk) => {
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      zk.instead.set(`follow ${paths.nodes}`, () => gate);
    });
    const waiting = watch(stage.view.waitUntilRead(stage.bound()));
    await atRest();
    expect(waiting.now.state).toBe('pending');
    expect(stage.view.explain()).toBe('ZooKeeper has not said yet who is primary');
    open();
    await atRest();
    expect(waiting.now.state).toBe('resolved');
  });

  test('comes to nothing where one cannot be understood', async () => {
    const stage = new Stage({}, (zk) => zk.write({ [paths.nodes]: 'not JSON' }));
    await expect(stage.view.waitUntilRead(stage.bound())).rejects.toMatchObject({
      name: 'LayoutError',
      message: expect.stringContaining('/set/nodes'),
    });
  });
});

describe('what cannot be understood', () => {
  test('is no primary, and is told, until it is repaired', async () => {
    const stage = await Stage.confirmed();
    const { view, zk } = stage;
    await zk.put({ [paths.primary]: '{}' });
    expect(view.reign).toBe(undefined);
    expect(view.explain()).toMatch(/^ZooKeeper says: the node \/set\/primary holds "{}"/);
    // News of the other znode do not repair it.
    await zk.put({ [paths.nodes]: nodesText(a, [b]) });
    expect(view.trouble).toMatchObject({ name: 'LayoutError', path: '/set/primary' });
    await stage.publish(1, a);
    expect(view.trouble).toBe(undefined);
    expect(view.usable()).toMatchObject({ term: 1, primary: a });
  });

  test('does not keep a call from waiting: it may be repaired', async () => {
    const stage = new Stage();
    await stage.zk.put({ [paths.primary]: '{}' });
    const waiting = watch(stage.view.waitUntilUsable(stage.bound()));
    await atRest();
    expect(waiting.now.state).toBe('pending');
    await stage.publish(1, a);
    expect(waiting.now.state).toBe('resolved');
  });
});

describe('a reply', () => {
  test('counts at once while the view holds, if it was confirmed after the connection was made', async () => {
    const stage = await Stage.confirmed();
    const madeMs = stage.clock.monotonicMs() - 1;
    expect(stage.view.settle(stage.reign, madeMs, stage.bound())).toBe(true);
  });

  test('is held until a confirmation that is sent after it, which is asked for', async () => {
    const stage = await Stage.confirmed();
    const { view, clock } = stage;
    const startMs = clock.monotonicMs();
    await clock.pass(100);
    const verdict = watch(Promise.resolve(view.settle(stage.reign, startMs + 50, stage.bound())));
    await atRest();
    expect(verdict.now.state).toBe('pending');
    expect(stage.sentSince(startMs)).toEqual([100]);
    // That one was sent in the same moment. Only the next one was surely sent after it.
    await clock.pass(300);
    expect(verdict.now).toEqual({ state: 'resolved', value: true });
    expect(stage.sentSince(startMs)).toEqual([100, 400]);
  });

  test('counts no more when another is known and the view is over, also if it was held', async () => {
    const stage = await Stage.confirmed();
    const { view, clock, zk } = stage;
    const { reign } = stage;
    zk.confirmsAtOnce = false;
    await clock.pass(1_000);
    const held = watch(Promise.resolve(view.settle(reign, 0, stage.bound())));
    await atRest();
    expect(held.now.state).toBe('pending');
    await stage.publish(2, b);
    expect(held.now).toEqual({ state: 'resolved', value: false });
    expect(view.settle(reign, 0, stage.bound())).toBe(false);
  });

  test('that is held rejects when its time is over', async () => {
    const stage = await Stage.confirmed();
    const { view, clock, zk } = stage;
    zk.confirmsAtOnce = false;
    const { reign } = stage;
    await clock.pass(1_000);
    const held = watch(Promise.resolve(view.settle(reign, 0, stage.bound(500))));
    await clock.pass(500);
    expect(held.now).toMatchObject({ error: expect.any(TimeUp) });
  });

  test('to a command of a term is hopeless when the view of another primary holds, and not before', async () => {
    const stage = await Stage.confirmed();
    const { view, clock, zk } = stage;
    const { reign } = stage;
    zk.confirmsAtOnce = false;
    await clock.pass(300);
    zk.lastConfirmation.fail(new Error('gone'));
    zk.confirmsAtOnce = true;
    await stage.publish(2, b);
    expect(view.isHopeless(reign)).toBe(false);
    await clock.pass(899);
    expect(view.isHopeless(reign)).toBe(false);
    await clock.pass(1);
    expect(view.isHopeless(reign)).toBe(true);
  });
});

describe('what is known is told', () => {
  test('after news of a znode, of the session, and of a confirmation', async () => {
    const { view, zk, clock } = await Stage.confirmed();
    const heard = vi.fn();
    const stop = view.onChange(heard);
    await zk.put({ [paths.nodes]: nodesText(a, [b]) });
    expect(heard.mock.calls.length).toBeGreaterThan(0);
    expect(view.picture).toEqual({ primary: a, replicas: [b], unavailable: [], term: 1 });
    heard.mockClear();
    await zk.become('suspended');
    expect(heard).toHaveBeenCalledTimes(1);
    heard.mockClear();
    await clock.pass(300);
    expect(heard).toHaveBeenCalledTimes(1);
    stop();
    await clock.pass(300);
    expect(heard).toHaveBeenCalledTimes(1);
  });

  test('a listener may take itself and others away', async () => {
    const { view, zk } = await Stage.confirmed();
    const heard: string[] = [];
    const stops = ['first', 'second'].map((name) =>
      view.onChange(() => {
        heard.push(name);
        for (const stop of stops) stop();
      }),
    );
    await zk.become('suspended');
    await zk.become('connected');
    expect(heard).toEqual(['first', 'second']);
  });

  test('the process of the primary as the record says it now', async () => {
    const stage = new Stage();
    const { zk, view } = stage;
    zk.write({ [paths.primary]: recordText(1, a, { runId: 'r1' }), [paths.nodes]: nodesText(a) });
    await atRest();
    const { reign } = stage;
    expect(view.runIdOf(reign)).toBe('r1');
    await zk.put({ [paths.primary]: recordText(1, a, { runId: 'r2' }) });
    expect(view.reign).toBe(reign);
    expect(view.runIdOf(reign)).toBe('r2');
  });
});

describe('why there is no primary is said', () => {
  test('ZooKeeper is away, and for how long: from the first word of it', async () => {
    const { view, zk, clock } = await Stage.confirmed();
    await zk.become('suspended');
    await clock.pass(2_000);
    await zk.become('connecting');
    await clock.pass(1_000);
    expect(view.explain()).toBe('ZooKeeper has been out of reach for 3s');
    await zk.become('connected');
    expect(view.explain()).toBe('ZooKeeper has not confirmed in time who is primary');
    await zk.become('suspended');
    expect(view.explain()).toBe('ZooKeeper has been out of reach for 0ms');
  });

  test('it was away from the beginning', async () => {
    const { view, clock } = new Stage({}, (zk) => {
      zk.state = 'connecting';
    });
    await clock.pass(1_500);
    expect(view.explain()).toBe('ZooKeeper has been out of reach for 1.5s');
  });

  test('it was there from the beginning', async () => {
    const { view } = new Stage();
    expect(view.explain()).toBe('ZooKeeper has not said yet who is primary');
  });

  test('nothing is at the root', async () => {
    const { view, clock } = new Stage();
    await clock.pass(1_000);
    expect(view.explain()).toBe(
      'there is neither /set/primary nor /set/nodes in ZooKeeper: is /set the root that the managers ' +
        'use, and does one run?',
    );
  });

  test('the two znodes contradict each other', async () => {
    const { view, zk } = new Stage();
    await zk.put({ [paths.nodes]: nodesText(null), [paths.primary]: recordText(1, a) });
    expect(view.explain()).toBe(
      '/set/primary says a:1 and /set/nodes says nobody is primary: do managers of both kinds run?',
    );
    await zk.put({ [paths.nodes]: nodesText(b), [paths.primary]: recordText(1, null) });
    expect(view.explain()).toBe(
      '/set/primary says nobody and /set/nodes says b:2 is primary: do managers of both kinds run?',
    );
  });

  test('it is moving: from which node, and for how long', async () => {
    const stage = await Stage.confirmed();
    const { view, zk, clock } = stage;
    zk.write({ [paths.primary]: recordText(1, null, { former: a }) });
    await zk.remove(paths.nodes);
    await clock.pass(1_000);
    await zk.put({ [paths.primary]: recordText(2, null, { former: a }) });
    await clock.pass(1_000);
    expect(view.explain()).toBe('the primary has been moving from a:1 for 2s');
    await zk.put({ [paths.primary]: recordText(2, null) });
    expect(view.explain()).toBe('the primary has been moving for 2s');
    await stage.publish(3, b);
    zk.write({ [paths.primary]: recordText(3, null, { former: b }) });
    await zk.remove(paths.nodes);
    expect(view.explain()).toBe('the primary has been moving from b:2 for 0ms');
  });

  test('it is moving since both znodes have been read, not longer', async () => {
    let open = () => {};
    const { view, zk, clock } = new Stage({}, (fake) => {
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      fake.instead.set(`follow ${paths.nodes}`, () => gate);
    });
    await zk.put({ [paths.primary]: recordText(1, null) });
    await clock.pass(2_000);
    open();
    await atRest();
    expect(view.explain()).toBe('the primary has been moving for 0ms');
  });

  test('it moves under Ruby managers, which keep no record', async () => {
    const { view, zk, clock } = new Stage();
    await zk.put({ [paths.nodes]: nodesText(null, [b]) });
    await clock.pass(1_000);
    expect(view.explain()).toBe('the primary has been moving for 1s');
  });

  test('there is a record of a primary, and nodes is gone', async () => {
    const { view, zk, clock } = new Stage();
    await zk.put({ [paths.primary]: recordText(1, a, { former: b }) });
    await clock.pass(1_000);
    expect(view.explain()).toBe('the primary has been moving from b:2 for 1s');
  });

  test('times are told in whole milliseconds', async () => {
    const { view, zk, clock } = await Stage.confirmed();
    await zk.become('suspended');
    await clock.pass(12.4);
    expect(view.explain()).toBe('ZooKeeper has been out of reach for 12ms');
  });
});

describe('when it is closed', () => {
  test('nothing goes on: no timer, no confirmation, no listener, nothing is followed', async () => {
    const stage = await Stage.confirmed();
    const { view, zk, clock } = stage;
    const heard = vi.fn();
    view.onChange(heard);
    expect([zk.following, zk.listeners, clock.timers]).toEqual([2, 1, 2]);
    await view.close();
    expect([zk.following, zk.listeners, clock.timers]).toEqual([0, 0, 0]);
    heard.mockClear();
    const { length } = zk.confirmations;
    await clock.pass(5_000);
    await zk.become('suspended');
    view.expectConfirmation(clock.monotonicMs());
    await clock.pass(100);
    expect(zk.confirmations).toHaveLength(length);
    expect(heard).not.toHaveBeenCalled();
    await view.close();
  });

  test('it is not over before all that it has begun is', async () => {
    let read = () => {};
    const stage = new Stage({}, (zk) => {
      const gate = new Promise<void>((resolve) => {
        read = resolve;
      });
      zk.instead.set(`follow ${paths.nodes}`, () => gate);
    });
    const heard = vi.fn();
    stage.view.onChange(heard);
    await atRest();
    heard.mockClear();
    const closing = watch(stage.view.close());
    await atRest();
    expect(closing.now.state).toBe('pending');
    read();
    await atRest();
    expect(closing.now.state).toBe('resolved');
    // From then on no listener is called.
    heard.mockClear();
    stage.view.expectConfirmation(stage.clock.monotonicMs());
    await atRest();
    expect(heard).not.toHaveBeenCalled();
  });

  test('while a confirmation is on its way, it does not wait for it', async () => {
    const { view, zk, clock } = await Stage.confirmed();
    zk.confirmsAtOnce = false;
    await clock.pass(300);
    await view.close();
    expect(clock.timers).toBe(0);
  });

  test('in the moment in which the first confirmation comes, the clocks are not looked at any more', async () => {
    const stage = new Stage();
    const { zk, view, clock } = stage;
    zk.confirmsAtOnce = false;
    await stage.publish(1, a);
    zk.lastConfirmation.answer();
    await view.close();
    expect(clock.timers).toBe(0);
  });

  test('while there is no primary', async () => {
    const { view, zk } = new Stage();
    await atRest();
    await view.close();
    expect(zk.following).toBe(0);
  });

  test('a look at the clocks that comes after it is the last', async () => {
    const { view, zk, clock } = await Stage.confirmed();
    zk.confirmsAtOnce = false;
    await clock.pass(240);
    const closing = view.close();
    await clock.pass(1_000);
    await closing;
    expect(clock.timers).toBe(0);
  });
});
