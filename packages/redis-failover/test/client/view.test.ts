import { describe, expect, test } from 'vitest';
import type { Proposal, Reign, Seen } from '../../src/client/view.ts';
import { View } from '../../src/client/view.ts';
import type { Nodes, PrimaryRecord } from '../../src/layout.ts';

const viewMs = 1_000;
/** Long before everything else. */
const connectedMs = 0;

/** Two clocks that a test moves as it likes. */
class Clocks {
  monotonicMs = 5_000;
  wallMs = 1_000_000_000;

  now() {
    const { monotonicMs, wallMs } = this;
    return { monotonicMs, wallMs };
  }

  pass(ms: number) {
    this.monotonicMs += ms;
    this.wallMs += ms;
    return this.now();
  }

  /** Suspends the host: only the wall clock counts that time. */
  suspend(ms: number) {
    this.wallMs += ms;
    return this.now();
  }

  stepWall(ms: number) {
    this.wallMs += ms;
    return this.now();
  }
}

let version = 0;

function record(term: number, primary: string | null, modifiedZxid = 2n): Seen<PrimaryRecord> {
  version += 1;
  const rest = {
    former: null,
    manager: 'm',
    token: '1',
    manualSeen: '0',
    replicationId: null,
    runId: null,
    gemViews: false,
  };
  return { value: { term, primary, viewMs, ...rest }, version, createdZxid: 1n, modifiedZxid };
}

function nodes(master: string, slaves: string[] = [], createdZxid = 2n): Seen<Nodes> {
  version += 1;
  const value = { master, slaves, unavailable: [] };
  return { value, version, createdZxid, modifiedZxid: createdZxid };
}

function proposed(view: View): Proposal {
  const { proposal } = view;
  if (proposal === undefined) throw new Error('nothing is proposed');
  return proposal;
}

/** A view that has just confirmed term 1 of `a`. */
function confirmedView(options: { safeMode?: boolean } = {}) {
  const clocks = new Clocks();
  const view = new View({ rubyViewMs: 9_000, safeMode: options.safeMode ?? true });
  view.seeRecord(record(1, 'a:1'));
  view.seeNodes(nodes('a:1', ['b:1']));
  const proposal = proposed(view);
  view.confirmed(proposal, clocks.now());
  const reign = view.usable(clocks.now()) as Reign;
  return { clocks, view, proposal, reign };
}

function move(view: View, term: number, primary: string) {
  view.seeRecord(record(term - 1, null));
  view.seeNodes(undefined);
  view.seeRecord(record(term, primary));
  view.seeNodes(nodes(primary));
}

test('no view holds before something was confirmed', () => {
  const clocks = new Clocks();
  const view = new View({ rubyViewMs: 9_000, safeMode: true });
  expect(view.look(clocks.now())).toBe(false);
  view.seeRecord(undefined);
  view.seeNodes(nodes('a:1'));
  // If only managers of the gem lead, their znode is not in doubt.
  expect(view.named).toMatchObject({ term: undefined, primary: 'a:1' });
  expect(view.look(clocks.now())).toBe(false);
  view.confirmed(proposed(view), clocks.now());
  expect(view.look(clocks.pass(8_999))).toBe(true);
  expect(view.look(clocks.pass(1))).toBe(false);
});

describe('a write is sent', () => {
  test('only after a confirmation: what was read may be old', () => {
    const clocks = new Clocks();
    const view = new View({ rubyViewMs: 9_000, safeMode: true });
    view.seeRecord(record(1, 'a:1'));
    expect(view.proposal).toBe(undefined);
    view.seeNodes(nodes('a:1'));
    expect(view.usable(clocks.now())).toBe(undefined);
    view.confirmed(proposed(view), clocks.now());
    expect(view.usable(clocks.now())).toEqual(expect.objectContaining({ term: 1, primary: 'a:1' }));
  });

  test('for as long as a view from when the confirmation was sent, not from when it came', () => {
    const { clocks, view, proposal } = confirmedView();
    const sentAt = clocks.pass(400);
    clocks.pass(900);
    view.confirmed(proposal, sentAt);
    expect(view.usable(clocks.pass(99))).toBeDefined();
    expect(view.usable(clocks.pass(1))).toBe(undefined);
  });

  test('not after a confirmation that came when its time was over', () => {
    const { clocks, view, proposal } = confirmedView();
    const sentAt = clocks.pass(100);
    clocks.pass(1_000);
    view.confirmed(proposal, sentAt);
    expect(view.usable(clocks.now())).toBe(undefined);
  });

  test('not once a revocation was noticed, though the view still holds', () => {
    const { clocks, view } = confirmedView();
    view.seeRecord(record(1, null));
    expect(view.usable(clocks.now())).toBe(undefined);
  });

  test('while both znodes name another primary when that is confirmed: Ruby managers have taken over', () => {
    for (const safeMode of [true, false]) {
      const { clocks, view } = confirmedView({ safeMode });
      view.seeNodes(nodes('b:1'));
      // The news of the record may be on its way.
      expect(view.usable(clocks.now())).toBe(undefined);
      expect(view.picture.primary).toBe(undefined);
      const { proposal } = view;
      expect(proposal?.recordVersion).toBeTypeOf('number');
      if (proposal !== undefined) view.confirmed(proposal, clocks.now());
      expect(view.usable(clocks.now())).toMatchObject({ primary: 'b:1', term: undefined });
      expect(view.picture).toMatchObject({ primary: 'b:1', term: undefined });
    }
  });

  test('when Ruby managers have moved the primary away and back: it is another term', () => {
    const { clocks, view, reign } = confirmedView();
    view.seeNodes(undefined);
    view.seeNodes(nodes('a:1', [], 3n));
    expect(view.usable(clocks.now())).toBe(undefined);
    view.confirmed(proposed(view), clocks.pass(10));
    expect(view.usable(clocks.now())).toMatchObject({ primary: 'a:1', term: undefined });
    expect(view.runIdOf(proposed(view).reign)).toBe(undefined);
    // A confirmation that was sent earlier may have been revoked in between.
    expect(view.judgeArrival(reign, clocks.pass(1_000), connectedMs)).toBe('changed');
    view.seeRecord(record(2, 'a:1', 4n));
    view.confirmed(proposed(view), clocks.now());
    expect(view.usable(clocks.now())).toMatchObject({ primary: 'a:1', term: 2 });
  });

  test('also when replicas come and go, without another confirmation', () => {
    const { clocks, view, reign } = confirmedView();
    view.seeNodes(nodes('a:1', []));
    expect(view.usable(clocks.now())).toBe(reign);
  });

  test('not after a suspension, which the monotonic clock does not count', () => {
    const { clocks, view } = confirmedView();
    expect(view.usable(clocks.suspend(1_000))).toBe(undefined);
  });

  test('not longer because the wall clock is set back', () => {
    const { clocks, view } = confirmedView();
    clocks.pass(900);
    view.usable(clocks.stepWall(-10_000));
    expect(view.usable(clocks.pass(100))).toBe(undefined);
  });

  test('not after a wall clock that was set back and a suspension, if one look came between', () => {
    const { clocks, view } = confirmedView();
    expect(view.usable(clocks.stepWall(-10_000))).toBeDefined();
    expect(view.usable(clocks.suspend(1_000))).toBe(undefined);
  });

  test('not because of a confirmation that was under way in a suspension that a look has seen', () => {
    const { clocks, view, proposal } = confirmedView();
    const sentAt = clocks.pass(100);
    clocks.pass(1);
    expect(view.usable(clocks.suspend(800))).toBeDefined();
    clocks.stepWall(-800);
    view.confirmed(proposal, sentAt);
    expect(view.usable(clocks.pass(198))).toBeDefined();
    expect(view.usable(clocks.pass(1))).toBe(undefined);
  });

  test('with safeMode: false even if the last confirmation is long ago, but not while it moves', () => {
    const { clocks, view, reign } = confirmedView({ safeMode: false });
    clocks.pass(60_000);
    expect(view.usable(clocks.now())).toBe(reign);
    expect(view.judgeArrival(reign, clocks.now(), connectedMs)).toBe('acknowledged');
    view.seeRecord(record(1, null));
    expect(view.usable(clocks.now())).toBe(undefined);
    expect(view.judgeArrival(reign, clocks.now(), connectedMs)).toBe('changed');
  });
});

describe('a reply', () => {
  test('counts while the view holds', () => {
    const { clocks, view, reign } = confirmedView();
    expect(view.judgeArrival(reign, clocks.pass(999), connectedMs)).toBe('acknowledged');
  });

  test('counts while the view holds, although the primary is seen to move: the mover waits', () => {
    const { clocks, view, reign } = confirmedView();
    view.seeRecord(record(1, null));
    view.seeNodes(undefined);
    expect(view.judgeArrival(reign, clocks.pass(999), connectedMs)).toBe('acknowledged');
    expect(view.judgeArrival(reign, clocks.pass(1), connectedMs)).toBe('changed');
  });

  test('over a connection that is younger than the confirmation is held: a new process may have answered', () => {
    const { clocks, view, proposal, reign } = confirmedView();
    const madeMs = clocks.pass(100).monotonicMs;
    const arrivedAt = clocks.pass(1);
    expect(view.judgeArrival(reign, arrivedAt, madeMs)).toBe('held');
    view.confirmed(proposal, clocks.pass(1));
    expect(view.judgeHeld(reign, arrivedAt)).toBe('acknowledged');
    expect(view.judgeArrival(reign, clocks.pass(1), madeMs)).toBe('acknowledged');
  });

  test('that comes too late is held, until a confirmation that was sent after it', () => {
    const { clocks, view, proposal, reign } = confirmedView();
    const sentBefore = clocks.pass(1_500);
    const arrivedAt = clocks.pass(1);
    expect(view.judgeArrival(reign, arrivedAt, connectedMs)).toBe('held');
    view.confirmed(proposal, sentBefore);
    expect(view.judgeHeld(reign, arrivedAt)).toBe('held');
    view.confirmed(proposal, clocks.pass(1));
    expect(view.judgeHeld(reign, arrivedAt)).toBe('acknowledged');
  });

  test('that is held does not count because the view has begun to hold again', () => {
    const { clocks, view, proposal, reign } = confirmedView();
    const sentBefore = clocks.pass(1_500);
    const arrivedAt = clocks.pass(1);
    expect(view.judgeArrival(reign, arrivedAt, connectedMs)).toBe('held');
    view.confirmed(proposal, sentBefore);
    // New writes may be sent, and the old reply still waits.
    expect(view.usable(clocks.now())).toBe(reign);
    expect(view.judgeHeld(reign, arrivedAt)).toBe('held');
  });

  test('that is held is lost when another term is seen first', () => {
    const { clocks, view, reign } = confirmedView();
    const arrivedAt = clocks.pass(1_500);
    expect(view.judgeArrival(reign, arrivedAt, connectedMs)).toBe('held');
    move(view, 2, 'b:1');
    view.confirmed(proposed(view), clocks.pass(10));
    expect(view.judgeHeld(reign, arrivedAt)).toBe('changed');
  });

  test('of an earlier term of the same node does not count by the later term (A, B, A)', () => {
    const { clocks, view, reign } = confirmedView();
    clocks.pass(5_000);
    move(view, 2, 'b:1');
    move(view, 3, 'a:1');
    view.confirmed(proposed(view), clocks.now());
    const now = view.usable(clocks.now());
    expect(now).toEqual(expect.objectContaining({ term: 3, primary: 'a:1' }));
    expect(view.judgeArrival(reign, clocks.pass(1), connectedMs)).toBe('changed');
    expect(view.judgeArrival(now as Reign, clocks.now(), connectedMs)).toBe('acknowledged');
  });

  test('of an earlier term does not count by a later one of the same node of which nothing came between', () => {
    const { clocks, view, reign } = confirmedView();
    const arrivedAt = clocks.pass(1_500);
    expect(view.judgeArrival(reign, arrivedAt, connectedMs)).toBe('held');
    view.seeRecord(record(3, 'a:1'));
    view.confirmed(proposed(view), clocks.pass(1));
    expect(view.judgeHeld(reign, arrivedAt)).toBe('changed');
  });

  test('counts by the latest confirmation, also when an earlier one comes after it', () => {
    const { clocks, view, proposal, reign } = confirmedView();
    const earlier = clocks.pass(100);
    view.confirmed(proposal, clocks.pass(300));
    view.confirmed(proposal, earlier);
    expect(view.judgeArrival(reign, clocks.pass(999), connectedMs)).toBe('acknowledged');
  });

  test('is not waited for when the view of another primary holds, and a refusal would be here', () => {
    const { clocks, view, reign } = confirmedView();
    expect(view.isHopeless(reign, clocks.pass(1_500))).toBe(false);
    move(view, 2, 'b:1');
    expect(view.isHopeless(reign, clocks.now())).toBe(false);
    view.confirmed(proposed(view), clocks.now());
    expect(view.isHopeless(reign, clocks.now())).toBe(true);
    expect(view.isHopeless(view.usable(clocks.now()) as Reign, clocks.now())).toBe(false);
    const quick = confirmedView();
    move(quick.view, 2, 'b:1');
    quick.view.confirmed(proposed(quick.view), quick.clocks.pass(900));
    expect(quick.view.isHopeless(quick.reign, quick.clocks.now())).toBe(false);
  });

  test('is still held when only `nodes` is gone: the record decides', () => {
    const { clocks, view, reign } = confirmedView();
    const arrivedAt = clocks.pass(1_500);
    expect(view.judgeArrival(reign, arrivedAt, connectedMs)).toBe('held');
    view.seeNodes(undefined);
    expect(view.judgeHeld(reign, arrivedAt)).toBe('held');
    // Our managers write both znodes in one transaction.
    view.seeRecord(record(1, 'a:1', 9n));
    view.seeNodes(nodes('a:1', [], 9n));
    expect(proposed(view).reign).toBe(reign);
    view.confirmed(proposed(view), clocks.pass(1));
    expect(view.judgeHeld(reign, arrivedAt)).toBe('acknowledged');
  });

  test('is judged by the length of a view that stood in the record when it was confirmed', () => {
    const { clocks, view, reign } = confirmedView();
    const longer = record(1, 'a:1');
    view.seeRecord({ ...longer, value: { ...longer.value, viewMs: 3_000 } });
    expect(view.judgeArrival(reign, clocks.pass(1_500), connectedMs)).toBe('held');
    view.confirmed(proposed(view), clocks.now());
    expect(view.judgeArrival(reign, clocks.pass(2_999), connectedMs)).toBe('acknowledged');
  });
});

describe('under Ruby managers, without a record', () => {
  function ruby() {
    const clocks = new Clocks();
    const view = new View({ rubyViewMs: 9_000, safeMode: true });
    view.seeRecord(undefined);
    view.seeNodes(nodes('a:1', ['b:1'], 7n));
    view.confirmed(proposed(view), clocks.now());
    return { clocks, view, reign: view.usable(clocks.now()) as Reign };
  }

  test('a view holds for nine seconds, and has no term', () => {
    const { clocks, view, reign } = ruby();
    expect(reign).toEqual(expect.objectContaining({ term: undefined, primary: 'a:1' }));
    expect(view.usable(clocks.pass(8_999))).toBe(reign);
    expect(view.usable(clocks.pass(1))).toBe(undefined);
  });

  test('a node that was deleted and made again begins another term of the same primary', () => {
    const { clocks, view, reign } = ruby();
    view.seeNodes(undefined);
    view.seeNodes(nodes('a:1', [], 8n));
    view.confirmed(proposed(view), clocks.pass(10));
    expect(view.usable(clocks.now())).not.toBe(reign);
    expect(view.judgeArrival(reign, clocks.now(), connectedMs)).toBe('changed');
  });

  test('a view never outlives what is seen: our managers, when they take over, do not wait for it', () => {
    const { clocks, view, reign } = ruby();
    expect(view.judgeArrival(reign, clocks.pass(10), connectedMs)).toBe('acknowledged');
    view.seeRecord(record(1, 'a:1'));
    expect(view.judgeArrival(reign, clocks.pass(10), connectedMs)).toBe('changed');
  });

  test('a record that cannot be read is not taken for none', () => {
    const { clocks, view, reign } = ruby();
    view.seeRecord(null);
    expect(view.proposal).toBe(undefined);
    expect(view.usable(clocks.now())).toBe(undefined);
    view.seeRecord(undefined);
    expect(view.usable(clocks.now())).toBe(reign);
  });
});
