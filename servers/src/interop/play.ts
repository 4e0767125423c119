import type { FencedLog, TermActivity } from '@incumbent/cli/trial';
import { waitUntil } from '@incumbent/cli/trial';
import type { ProxyTarget, TestProxy } from '@incumbent/zookeeper-testing';
import { startProxy } from '@incumbent/zookeeper-testing';
import type { Seat } from './member.ts';
import { Member } from './member.ts';
import type { Change, Strike } from './plan.ts';
import type { Command } from './program.ts';

/** Where an election is held, and what its members are started with. */
export interface Venue {
  readonly ours: Command;
  readonly theirs: Command;
  readonly server: ProxyTarget;
  readonly path: string;
  readonly sessionMs: number;
  readonly log: FencedLog;
  /**
   * Ends what a struck member of theirs leaves on the server, where that stays for longer than anybody
   * here wants to wait. Default: it ends by itself.
   */
  readonly bury?: (struck: TermActivity) => Promise<void>;
}

export type Side = 'ours' | 'theirs';

/** The members that come to the queue, in their order. Each side follows the other and itself. */
export const arrivals: Readonly<Record<`${Side} first`, readonly Side[]>> = {
  'ours first': ['ours', 'theirs', 'theirs', 'ours'],
  'theirs first': ['theirs', 'ours', 'ours', 'theirs'],
};
export type Arrival = keyof typeof arrivals;

export interface Played {
  readonly strike: Strike;
  readonly struck: TermActivity;
  readonly next: TermActivity;
  /** From the strike to the first effect of the next term. */
  readonly takeoverMs: number;
}

/** When nobody leads for so long, there is no point in going on. */
const stuckMs = 60_000;

export function sideOf(candidate: string): Side {
  return candidate.startsWith('ours') ? 'ours' : 'theirs';
}

/** Four members of one election, of whom the leader is struck again and again. */
export class Play implements AsyncDisposable {
  readonly #venue: Venue;
  readonly #members = new Map<string, Member>();
  /** The network of each member. */
  readonly #proxies = new Map<string, TestProxy>();
  #complaints = '';

  constructor(venue: Venue) {
    this.#venue = venue;
  }

  /** Lines that nobody expected of the members. */
  get complaints(): string {
    return [this.#complaints, ...[...this.#members.values()].map((each) => each.complaints)].join(
      '',
    );
  }

  get members(): readonly Member[] {
    return [...this.#members.values()];
  }

  /** They come one after the other. */
  async gather(arrival: Arrival): Promise<void> {
    const ids = arrivals[arrival].map((side, index) => `${side}-${index + 1}.1`);
    const members = await Promise.all(ids.map((id) => this.#start(id)));
    for (const member of members) await member.join();
  }

  /**
   * Strikes the leader, waits for the next one, and has the struck one join again, as the last.
   * Rejects when nobody leads for a minute, and when a member does not do as it was told.
   */
  async change({ strike, afterMs }: Change): Promise<Played> {
    const struck = await this.#leader('nobody leads', () => true);
    await waitUntil(() => false, afterMs);
    const member = this.#member(struck.candidate);
    const atNs = process.hrtime.bigint();
    const others = (term: TermActivity) => term.candidate !== struck.candidate;
    const since = `nobody leads since ${strike} of ${struck.candidate}`;
    let next: TermActivity;
    switch (strike) {
      case 'resign': {
        await member.resign();
        next = await this.#leader(since, others);
        await member.join();
        break;
      }
      case 'kill': {
        await this.#end(member);
        await this.#bury(struck);
        const [successor] = await Promise.all([
          this.#leader(since, others),
          this.#start(successorOf(member.id)).then((fresh) => fresh.join()),
        ]);
        next = successor;
        break;
      }
      case 'freeze': {
        member.freeze();
        try {
          await this.#bury(struck);
          next = await this.#leader(since, others);
        } finally {
          member.thaw();
        }
        await this.#rejoined(member.id);
        break;
      }
      case 'silence': {
        const proxy = this.#proxies.get(member.id);
        proxy?.silence();
        await this.#bury(struck);
        next = await this.#leader(since, others);
        await proxy?.pass();
        await this.#rejoined(member.id);
        break;
      }
      default:
        return strike satisfies never;
    }
    return { strike, struck, next, takeoverMs: Number(next.firstNs - atNs) / 1e6 };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.members.map((member) => this.#end(member)));
    await Promise.all([...this.#proxies.values()].map((proxy) => proxy.close()));
  }

  #member(id: string): Member {
    const member = this.#members.get(id);
    if (member === undefined) throw new Error(`${id} leads, but is no member any more`);
    return member;
  }

  async #start(id: string): Promise<Member> {
    const { ours, theirs, server, path, sessionMs, log } = this.#venue;
    const proxy = await startProxy(server);
    this.#proxies.set(id, proxy);
    const address = `${proxy.host}:${proxy.port}`;
    const seat: Seat = { address, path, id, sessionMs, log: log.path };
    const member = await Member.start(sideOf(id) === 'ours' ? ours : theirs, seat);
    this.#members.set(id, member);
    return member;
  }

  async #bury(struck: TermActivity): Promise<void> {
    if (sideOf(struck.candidate) === 'theirs') await this.#venue.bury?.(struck);
  }

  async #end(member: Member): Promise<void> {
    this.#members.delete(member.id);
    await member.kill();
    // As the kernel of a killed process does: the server hears the end of the connection.
    await this.#proxies.get(member.id)?.close();
    this.#complaints += member.complaints;
  }

  async #leader(otherwise: string, wanted: (term: TermActivity) => boolean): Promise<TermActivity> {
    const { log } = this.#venue;
    const found = await waitUntil(() => {
      const { newest } = log.judge;
      return newest !== undefined && wanted(newest) && newest;
    }, stuckMs);
    if (found === undefined) throw new Error(`${otherwise}\n${this.complaints}`);
    return found;
  }

  /** It has learnt that its session is over, and has come back by itself. */
  async #rejoined(id: string): Promise<void> {
    for (let asked = 0; asked < 1000; asked += 1) {
      const { ids, leader } = await this.#member(id).contenders();
      if (leader !== id && ids.includes(id)) return;
      await waitUntil(() => false, 20);
    }
    throw new Error(`${id} does not come back\n${this.complaints}`);
  }
}

/** A started-anew member has another id, because the place of the killed one is still there. */
function successorOf(id: string): string {
  const [seat = '', start = ''] = id.split('.');
  return `${seat}.${Number(start) + 1}`;
}
