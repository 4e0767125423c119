import { randomUUID } from 'node:crypto';
import { NoNodeError } from '@incumbent/zookeeper';
import type { Auditor } from '../auditor.ts';
import { Guids } from '../models/guids.ts';
import { Names } from '../models/names.ts';
import { fateOf } from '../outcome.ts';
import type { Player } from '../player.ts';
import { hex } from '../player.ts';

const most = 40;

/** Makes and deletes nodes: plain, sequential, ephemeral, protected. */
export class Nodes {
  readonly #player: Player;
  readonly #plain: Names = new Names();
  readonly #sequential: Names = new Names();
  /** A lost reply hides a name: so many may be there that nobody knows. */
  #unknownSequential = 0;
  #lastNumber = -1;
  readonly #ephemeral = new Map<string, bigint>();
  readonly #guids: Guids = new Guids();
  readonly #guidSessions = new Map<string, bigint>();
  #count = 0;

  constructor(player: Player) {
    this.#player = player;
  }

  async prepare(auditor: Auditor): Promise<void> {
    for (const folder of ['plain', 'sequential', 'ephemeral', 'protected']) {
      await auditor.create(`${this.#player.base}/${folder}`);
    }
  }

  start(): void {
    this.#player.act(80, () => this.#makePlain());
    this.#player.act(80, () => this.#deletePlain());
    this.#player.act(150, () => this.#makeSequential());
    this.#player.act(150, () => this.#makeEphemeral());
    this.#player.act(200, () => this.#makeProtected());
  }

  async #makePlain(): Promise<void> {
    if (this.#plain.there.size > most) return;
    const { client, calls, base, arena } = this.#player;
    this.#count += 1;
    const name = `n-${this.#count}`;
    const outcome = await calls.call({
      what: 'create',
      boundMs: arena.timeoutMs,
      ordered: true,
      // A name that was never used before: NodeExists would be a node made twice.
      start: () => client.create(`${base}/plain/${name}`, name),
    });
    this.#plain.created(name, fateOf(outcome));
  }

  async #deletePlain(): Promise<void> {
    const [name] = this.#plain.there;
    if (name === undefined) return;
    const { client, calls, base, arena } = this.#player;
    const outcome = await calls.call({
      what: 'delete',
      boundMs: arena.timeoutMs,
      ordered: true,
      start: () => client.delete(`${base}/plain/${name}`),
      mayFail: (error) => error instanceof NoNodeError,
    });
    const absent = !outcome.ok && outcome.error instanceof NoNodeError;
    this.#player.checked(['kept'], this.#plain.deleted(name, fateOf(outcome), absent));
  }

  async #makeSequential(): Promise<void> {
    const { client, calls, base, arena } = this.#player;
    const outcome = await calls.call({
      what: 'create sequential',
      boundMs: arena.timeoutMs,
      ordered: true,
      start: () => client.create(`${base}/sequential/s-`, null, { sequential: true }),
    });
    if (fateOf(outcome) === 'in doubt') this.#unknownSequential += 1;
    if (!outcome.ok) return;
    const name = outcome.value.path.slice(outcome.value.path.lastIndexOf('/') + 1);
    const number = Number(name.slice(2));
    const what = `${this.#player.name}: ${name} after number ${this.#lastNumber}`;
    arena.findings.judge('order', number > this.#lastNumber ? undefined : what);
    this.#lastNumber = number;
    this.#sequential.created(name, 'done');
  }

  async #makeEphemeral(): Promise<void> {
    if (this.#ephemeral.size > most) return this.#deleteEphemeral();
    const { client, calls, base, arena, sessionId } = this.#player;
    this.#count += 1;
    const path = `${base}/ephemeral/e-${this.#count}`;
    const outcome = await calls.call({
      what: 'create ephemeral',
      boundMs: arena.timeoutMs,
      ordered: true,
      start: () => client.create(path, hex(sessionId ?? 0n), { ephemeral: true }),
    });
    if (!outcome.ok) return;
    const owner = outcome.value.stat?.ephemeralOwner;
    this.#player.checkOwner(path, sessionId, owner);
    if (owner !== undefined) this.#ephemeral.set(path, owner);
  }

  async #deleteEphemeral(): Promise<void> {
    const { client, calls, arena } = this.#player;
    const [path] = this.#ephemeral.keys();
    if (path === undefined) return;
    this.#ephemeral.delete(path);
    await calls.call({
      what: 'delete ephemeral',
      boundMs: arena.timeoutMs,
      ordered: true,
      start: () => client.delete(path),
      mayFail: (error) => error instanceof NoNodeError,
    });
  }

  async #makeProtected(): Promise<void> {
    const { client, calls, base, random, arena, sessionId } = this.#player;
    const guid = randomUUID();
    const ephemeral = random() < 0.5;
    const path = `${base}/protected/node`;
    this.#guids.began(guid);
    const outcome = await calls.call({
      what: 'protected create',
      // It looks for its node: twice the common bound.
      boundMs: 2 * arena.timeoutMs,
      start: () =>
        client.create(path, hex(sessionId ?? 0n), { protected: guid, sequential: true, ephemeral }),
    });
    if (!outcome.ok) return;
    const name = outcome.value.path.slice(outcome.value.path.lastIndexOf('/') + 1);
    this.#guids.ended(guid, name);
    if (!ephemeral) return;
    const owner = outcome.value.stat?.ephemeralOwner;
    this.#player.checkOwner(path, sessionId, owner);
    if (owner !== undefined) this.#guidSessions.set(guid, owner);
  }

  /** While nothing is on its way. */
  async inspect(auditor: Auditor): Promise<void> {
    const player = this.#player;
    const { base } = player;
    const plain = await auditor.list(`${base}/plain`);
    player.checked(['kept', 'refused'], this.#plain.observed(plain));
    await this.#inspectSequential(auditor);

    const session = player.sessionId;
    const ephemerals = new Set(await auditor.list(`${base}/ephemeral`));
    for (const [path, owner] of this.#ephemeral) {
      if (owner !== session) {
        this.#ephemeral.delete(path);
      } else {
        const there = ephemerals.has(path.slice(path.lastIndexOf('/') + 1));
        const what = `${path} is gone, and its session ${hex(owner)} lives`;
        player.checked(['kept'], there ? [] : [{ guarantee: 'kept', what }]);
      }
    }
    await this.#checkOwners(auditor, 'ephemeral', [...ephemerals]);

    for (const [guid, owner] of this.#guidSessions) {
      if (owner !== session) this.#guids.forget(guid);
    }
    this.#guidSessions.clear();
    const found = await auditor.list(`${base}/protected`);
    player.checked(['once', 'kept'], this.#guids.observed(found));
    await this.#checkOwners(auditor, 'protected', found);
    await Promise.all(found.map((name) => auditor.delete(`${base}/protected/${name}`)));
  }

  async #inspectSequential(auditor: Auditor): Promise<void> {
    const player = this.#player;
    const folder = `${player.base}/sequential`;
    const found = await auditor.list(folder);
    const unknown = found.filter((name) => !this.#sequential.there.has(name));
    const what = `${unknown.length} sequential nodes nobody was told of, ${this.#unknownSequential} creates are in doubt`;
    const problems = unknown.length > this.#unknownSequential ? what : undefined;
    player.arena.findings.judge('refused', problems && `${player.name}: ${problems}`);
    const known = found.filter((name) => !unknown.includes(name));
    player.checked(['kept'], this.#sequential.observed(known));
    for (const name of known) this.#sequential.forget(name);
    this.#unknownSequential -= unknown.length;
    await Promise.all(found.map((name) => auditor.delete(`${folder}/${name}`)));
  }

  /** Each says in its data in which session it was asked for; 0x0 is whichever came next. */
  async #checkOwners(auditor: Auditor, folder: string, names: readonly string[]): Promise<void> {
    for (const name of names) {
      const path = `${this.#player.base}/${folder}/${name}`;
      const { text, owner } = await auditor.see(path);
      if (owner !== 0n && text !== '0x0') this.#player.checkOwner(path, BigInt(text), owner);
    }
  }

  /** Ephemeral nodes of sessions that are over, of this client. */
  async orphans(auditor: Auditor): Promise<string[]> {
    const { base, sessionId } = this.#player;
    const found: string[] = [];
    for (const name of await auditor.list(`${base}/ephemeral`)) {
      const { owner } = await auditor.see(`${base}/ephemeral/${name}`);
      if (owner !== 0n && owner !== sessionId) found.push(`${name} of session ${hex(owner)}`);
    }
    return found;
  }
}
