import { BadVersionError, NoNodeError, TransactionError } from '@incumbent/zookeeper';
import type { Auditor } from '../auditor.ts';
import { GuardedRegister } from '../models/guarded-register.ts';
import { OpenRegister } from '../models/open-register.ts';
import { fateOf, isTrouble } from '../outcome.ts';
import type { Player } from '../player.ts';

const guardedCount = 2;

/** Nodes that this client alone writes, with numbers that rise. */
export class Registers {
  readonly #player: Player;
  readonly #guarded: { readonly path: string; readonly model: GuardedRegister }[];
  readonly #open: OpenRegister = new OpenRegister();
  /** Written in one transaction, both or none. */
  readonly #pair: GuardedRegister = new GuardedRegister();

  constructor(player: Player) {
    this.#player = player;
    this.#guarded = Array.from({ length: guardedCount }, (_, k) => ({
      path: `${player.base}/guarded-${k}`,
      model: new GuardedRegister(),
    }));
  }

  async prepare(auditor: Auditor): Promise<void> {
    const { base } = this.#player;
    const names = ['open', 'pair-a', 'pair-b'].map((name) => `${base}/${name}`);
    for (const path of [...names, ...this.#guarded.map((one) => one.path)]) {
      await auditor.create(path, '0');
    }
  }

  start(): void {
    for (const { path, model } of this.#guarded) {
      this.#player.act(40, () => this.#writeGuarded(path, model));
    }
    this.#player.act(60, () => this.#writePair());
    this.#player.act(250, () => this.#writeOpen());
  }

  async #writeGuarded(path: string, model: GuardedRegister): Promise<void> {
    const { client, calls } = this.#player;
    const { timeoutMs } = this.#player.arena;
    const { n, version } = model.next();
    const outcome = await calls.call({
      what: `set ${path}`,
      boundMs: timeoutMs,
      ordered: true,
      start: () => client.set(path, String(n), { version }),
      mayFail: (error) => error instanceof BadVersionError,
    });
    const badVersion = !outcome.ok && outcome.error instanceof BadVersionError;
    const after = outcome.ok ? outcome.value.stat.version : undefined;
    this.#player.checked(['kept'], model.settled(n, fateOf(outcome), after, badVersion));
    if (!outcome.ok) await this.#lookAgain(path, model);
  }

  /** Behind a sync, so that what was committed is seen. */
  async #lookAgain(path: string, model: GuardedRegister): Promise<void> {
    const { client, calls, arena } = this.#player;
    const outcome = await calls.call({
      what: `sync and get ${path}`,
      boundMs: 2 * arena.timeoutMs,
      start: async () => {
        await client.sync(path);
        return client.get(path);
      },
    });
    if (!outcome.ok) return;
    const { text, stat } = outcome.value;
    this.#player.checked(['kept', 'refused'], model.observed(Number(text), stat.version));
  }

  async #writePair(): Promise<void> {
    const { client, calls, base, random, arena } = this.#player;
    const [a, b] = [`${base}/pair-a`, `${base}/pair-b`];
    if (random() < 0.2) {
      // The last of three is refused, so none may be seen.
      const outcome = await calls.call({
        what: 'transaction to be refused',
        boundMs: arena.timeoutMs,
        ordered: true,
        start: () =>
          client.transaction().set(a, '-1').set(b, '-1').check(`${base}/no-such`).commit(),
        mayFail: (error) => error instanceof TransactionError,
      });
      const right =
        !outcome.ok &&
        (isTrouble(outcome.error) ||
          (outcome.error instanceof TransactionError &&
            outcome.error.index === 2 &&
            outcome.error.cause instanceof NoNodeError));
      const problem = `${this.#player.name}: a check of no node did not refuse a transaction`;
      arena.findings.judge('whole', right ? undefined : problem);
      return;
    }
    const { n, version } = this.#pair.next();
    const outcome = await calls.call({
      what: 'transaction',
      boundMs: arena.timeoutMs,
      ordered: true,
      start: () =>
        client
          .transaction()
          .check(base)
          .set(a, String(n), version)
          .set(b, String(n), version)
          .commit(),
      mayFail: (error) =>
        error instanceof TransactionError && error.cause instanceof BadVersionError,
    });
    const badVersion = !outcome.ok && outcome.error instanceof TransactionError;
    const set = outcome.ok ? outcome.value.results[1] : undefined;
    const after = set?.type === 'set' ? set.stat.version : undefined;
    const problems = this.#pair.settled(n, fateOf(outcome), after, badVersion);
    this.#player.checked(['kept'], problems);
    if (!outcome.ok) await this.#lookAgain(a, this.#pair);
  }

  /** Ten at once, some of them given up. */
  async #writeOpen(): Promise<void> {
    const { client, calls, base, random, arena } = this.#player;
    const path = `${base}/open`;
    const writes = Array.from({ length: 10 }, async () => {
      const n = this.#open.next();
      const boundMs = random() < 0.1 ? 1 + random() * 50 : undefined;
      const outcome = await calls.call({
        what: `set ${path}`,
        boundMs: boundMs ?? arena.timeoutMs,
        ordered: boundMs === undefined,
        start: () => client.set(path, String(n), { timeoutMs: boundMs }),
      });
      const version = outcome.ok ? outcome.value.stat.version : 0;
      const { connects } = client.counters;
      this.#player.report(this.#open.settled(n, fateOf(outcome), connects, version));
    });
    await Promise.all(writes);
  }

  /** While nothing is on its way. */
  async inspect(auditor: Auditor): Promise<void> {
    const { base } = this.#player;
    for (const { path, model } of this.#guarded) {
      const { n, version } = await auditor.read(path);
      this.#player.checked(['kept', 'refused'], model.observed(n, version));
    }
    const open = await auditor.read(`${base}/open`);
    this.#player.checked(['kept', 'refused'], this.#open.observed(open.n, open.version));
    const a = await auditor.read(`${base}/pair-a`);
    const b = await auditor.read(`${base}/pair-b`);
    this.#player.checked(['kept', 'refused'], this.#pair.observed(a.n, a.version));
    const same = a.n === b.n && a.version === b.version && a.n >= 0;
    const what = `${this.#player.name}: one has write ${a.n}, the other ${b.n}`;
    this.#player.arena.findings.judge('whole', same ? undefined : what);
  }
}
