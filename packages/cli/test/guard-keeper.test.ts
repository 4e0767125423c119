import { afterEach, expect, test, vi } from 'vitest';
import { Guard, GuardError } from '../src/guard/index.ts';
import { GuardKeeper } from '../src/run/guard-keeper.ts';

afterEach(() => vi.restoreAllMocks());

/** Guards that only write down what they are told. */
function fakeGuards() {
  const guards: { readonly told: unknown[]; readonly lose: () => void }[] = [];
  vi.spyOn(Guard, 'start').mockImplementation(async () => {
    const told: unknown[] = [];
    let lose = () => {};
    const lost = new Promise<GuardError>((resolve) => {
      lose = () => resolve(new GuardError('GUARD_LOST', 'the guard ended'));
    });
    guards.push({ told, lose });
    return {
      lost,
      belief: () => {},
      seat: (seat: unknown) => told.push(seat),
      abandon: () => {},
    } as unknown as Guard;
  });
  return guards;
}

const margins = { stopMarginMs: 2, killMarginMs: 1 };
const seatOf = (token: string, ...nonces: string[]) => ({
  ...{ id: 'a', incarnation: 'i', token, nonces },
});

test('a guard that starts later is told of the seat', async () => {
  const guards = fakeGuards();
  const keeper = new GuardKeeper(margins);
  keeper.seat(seatOf('1', 'x'));
  await keeper.get();
  expect(guards[0]?.told).toEqual([seatOf('1', 'x')]);
});

test.each(['lost', 'replaced'])(
  'after a guard was %s, the next one is told of later terms only: it has not held that program',
  async (how) => {
    const guards = fakeGuards();
    const keeper = new GuardKeeper(margins);
    await keeper.get();
    keeper.seat(seatOf('1', 'x'));
    if (how === 'lost') guards[0]?.lose();
    else keeper.replace();
    await Promise.resolve();
    await keeper.get();
    keeper.seat(seatOf('1', 'x', 'y'));
    expect(guards[1]?.told).toEqual([]);
    keeper.seat(undefined);
    keeper.seat(seatOf('2', 'z'));
    expect(guards[1]?.told).toEqual([undefined, seatOf('2', 'z')]);
    // Another seat, whose token is the same.
    keeper.seat({ ...seatOf('1', 'w'), seat: 2 });
    expect(guards[1]?.told).toHaveLength(3);
  },
);
