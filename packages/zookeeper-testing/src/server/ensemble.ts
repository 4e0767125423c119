/// <reference lib="esnext.disposable" preserve="true" />
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestCertificates } from './certificates.ts';
import { createCertificates } from './certificates.ts';
import { modeOf } from './four-letter-word.ts';
import type { Installation } from './installation.ts';
import { findInstallation } from './installation.ts';
import type { EnsembleOptions, MemberSeat, WaitOptions } from './options.ts';
import { checkServerOptions } from './options.ts';
import { poll } from './poll.ts';
import { freePorts } from './ports.ts';
import { RunningServer } from './running-server.ts';
import type { TestServer } from './server.ts';
import { onFreePorts, temporaryDirectory } from './server.ts';

/** One server of an ensemble. */
export interface TestMember extends TestServer {
  /** Its number in the ensemble, from 1. */
  readonly id: number;
  /** `server.N=…`: the argument with which `reconfig` lets this member join. */
  readonly configurationLine: string;
  /** The ports of its links to the other members. Cut them to separate it. */
  readonly peerPorts: PeerPorts;
}

export interface PeerPorts {
  /** A leader listens there for its followers. */
  readonly quorum: number;
  /** Each member listens there for the votes of the others. */
  readonly election: number;
}

/** Real ZooKeeper servers that elect a leader among themselves. */
export interface TestEnsemble extends AsyncDisposable {
  /** In the order of their ids; `addMember()` appends. */
  readonly members: readonly TestMember[];
  /** `zk://` with all members. */
  readonly connectionString: string;
  /** `zks://` with all members; undefined without the option `tls`. */
  readonly secureConnectionString: string | undefined;
  /**
   * The authority that a client trusts, and the certificate that it shows; undefined without the
   * option `tls`.
   */
  readonly certificates: TestCertificates | undefined;
  /** Waits until exactly one running member leads. Rejects with `TIMED_OUT`. */
  leader(options?: WaitOptions): Promise<TestMember>;
  /** The running members that follow a leader at this moment. */
  followers(): Promise<TestMember[]>;
  /** Waits until one member leads and `atLeast` (default: more than half of all) serve, the leader
   *  among them. Rejects with `TIMED_OUT`. */
  waitForQuorum(options?: WaitOptions & { readonly atLeast?: number }): Promise<void>;
  /** Restarts each member, the leader last, and waits each time until all that run serve. */
  rollingRestart(options?: WaitOptions): Promise<void>;
  /**
   * Starts one more server, which needs the option `reconfiguration`. It knows the others but is
   * not one of them until a client passes its `configurationLine` to `reconfig`. Resolves when it
   * answers.
   */
  addMember(): Promise<TestMember>;
  /**
   * Kills all processes and removes their files, except a `dataDirectory` that was given.
   * Idempotent.
   */
  close(): Promise<void>;
}

/**
 * Starts an ensemble on free ports of 127.0.0.1. Resolves when one member leads and all others
 * follow. Rejects as {@link startServer} does, and leaves nothing behind then.
 * @param size number of members, 1 to 9; an even number tolerates no more failures than the odd one
 *   below it
 */
export async function startEnsemble(
  size = 3,
  options: EnsembleOptions = {},
): Promise<TestEnsemble> {
  if (!Number.isInteger(size) || size < 1 || size > 9) {
    throw new TypeError(`an ensemble has 1 to 9 members, not ${size}`);
  }
  if (options.seats !== undefined && options.seats.length < size) {
    throw new TypeError(`${size} members need as many seats, not ${options.seats.length}`);
  }
  checkServerOptions('startEnsemble', options);
  const installation = findInstallation(options);
  return onFreePorts(async () => {
    const ensemble = new Ensemble(options, installation, await temporaryDirectory());
    try {
      await ensemble.start(size);
    } catch (error) {
      await ensemble.close();
      throw error;
    }
    return ensemble;
  });
}

class Ensemble implements TestEnsemble {
  readonly members: Member[] = [];
  certificates: TestCertificates | undefined;
  readonly #options: EnsembleOptions;
  readonly #installation: Installation;
  readonly #directory: string;
  #starting: Promise<unknown> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: EnsembleOptions, installation: Installation, directory: string) {
    this.#options = options;
    this.#installation = installation;
    this.#directory = directory;
  }

  get connectionString(): string {
    return `zk://${this.members.map(({ host, port }) => `${host}:${port}`).join(',')}`;
  }

  get secureConnectionString(): string | undefined {
    if (this.certificates === undefined) return undefined;
    return `zks://${this.members.map(({ host, securePort }) => `${host}:${securePort}`).join(',')}`;
  }

  /** All at once: each waits for a majority. */
  async start(size: number): Promise<void> {
    const { signal, startTimeoutMs, tls } = this.#options;
    if (tls !== undefined)
      this.certificates = await createCertificates(join(this.#directory, 'tls'));
    const seats = await this.#takeSeats(1, size);
    const lines = seats.map(({ line }) => line);
    for (const seat of seats) this.members.push(this.#member(seat, lines));
    const starts = this.members.map((member) => member.start('serving', signal));
    this.#starting = Promise.allSettled(starts);
    await Promise.all(starts);
    await this.waitForQuorum({
      atLeast: size, // a member may have served as a read-only one
      timeoutMs: startTimeoutMs ?? 60_000,
      ...(signal && { signal }),
    });
  }

  async addMember(): Promise<TestMember> {
    if (this.#options.reconfiguration !== true) {
      throw new TypeError('a member can be added with the option `reconfiguration` alone');
    }
    const [seat] = (await this.#takeSeats(this.members.length + 1, 1)) as [Seat];
    // It must not count itself as a participant yet: it would count itself into a majority.
    const itself = seat.line.replace(':participant', ':observer');
    const lines = [...this.members.map((member) => member.configurationLine), itself];
    const member = this.#member(seat, lines);
    this.members.push(member);
    await member.start('answering', this.#options.signal);
    return member;
  }

  async leader(options: WaitOptions = {}): Promise<TestMember> {
    return poll('one member leads', options, async () => {
      const leaders = await this.#inMode('leader');
      return leaders.length === 1 ? leaders[0] : undefined;
    });
  }

  async followers(): Promise<TestMember[]> {
    return this.#inMode('follower');
  }

  async waitForQuorum(options: WaitOptions & { readonly atLeast?: number } = {}): Promise<void> {
    const atLeast = options.atLeast ?? Math.floor(this.members.length / 2) + 1;
    await poll(`a leader, and ${atLeast} members that serve`, options, async () => {
      const modes = await this.#modes();
      const leads = modes.filter((mode) => mode === 'leader').length === 1;
      const serving = modes.filter((mode) => mode !== undefined && mode !== 'read-only').length;
      return leads && serving >= atLeast ? true : undefined;
    });
  }

  async rollingRestart(options: WaitOptions = {}): Promise<void> {
    const leader = await this.leader(options);
    const order = [...this.members.filter((member) => member !== leader), leader];
    for (const member of order) {
      if (member.state === 'stopped') continue;
      const { signal } = options;
      await member.restart(signal ? { signal } : {});
      const atLeast = this.members.filter(({ state }) => state === 'running').length;
      await this.waitForQuorum({ ...options, atLeast });
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    await Promise.all(this.members.map((member) => member.close()));
    await this.#starting; // one that was not spawned yet still writes its files
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 2 });
  }

  async #takeSeats(firstId: number, count: number): Promise<Seat[]> {
    // Nothing else listens at another address, so one of our own numbers is as good as any.
    const ports = await freePorts(count * 4);
    return Array.from({ length: count }, (_none, index) => {
      const id = firstId + index;
      const { host, command = [] } = this.#options.seats?.[id - 1] ?? { host: '127.0.0.1' };
      const [port, securePort, quorum, election] = ports.slice(index * 4) as Ports;
      const line = `server.${id}=${host}:${quorum}:${election}:participant;${host}:${port}`;
      return { id, host, command, port, securePort, peerPorts: { quorum, election }, line };
    });
  }

  #member(seat: Seat, lines: readonly string[]): Member {
    const directory = join(this.#directory, String(seat.id));
    const { dataDirectory } = this.#options;
    return new Member(seat, {
      options: this.#options,
      installation: this.#installation,
      directory,
      dataDirectory: dataDirectory ? join(dataDirectory, String(seat.id)) : join(directory, 'data'),
      temporaryDirectory: this.#directory,
      host: seat.host,
      command: seat.command,
      port: seat.port,
      securePort: this.certificates && seat.securePort,
      certificates: this.certificates,
      membership: { id: seat.id, lines },
    });
  }

  async #inMode(wanted: string): Promise<Member[]> {
    const modes = await this.#modes();
    return this.members.filter((_member, index) => modes[index] === wanted);
  }

  /** Of each member; undefined for one that does not serve. */
  async #modes(): Promise<(string | undefined)[]> {
    return Promise.all(
      this.members.map(async (member) => {
        if (member.state !== 'running') return undefined;
        try {
          return modeOf(await member.fourLetterWord('srvr', { timeoutMs: 1000 }));
        } catch {
          return undefined; // on its way up or down
        }
      }),
    );
  }
}

class Member extends RunningServer implements TestMember {
  readonly id: number;
  readonly configurationLine: string;
  readonly peerPorts: PeerPorts;

  constructor(seat: Seat, plan: ConstructorParameters<typeof RunningServer>[0]) {
    super(plan);
    this.id = seat.id;
    this.configurationLine = seat.line;
    this.peerPorts = seat.peerPorts;
  }
}

/** A member's number, place and ports. */
interface Seat extends Required<MemberSeat> {
  readonly id: number;
  readonly port: number;
  readonly securePort: number;
  readonly peerPorts: PeerPorts;
  /** `server.<id>=<host>:<quorum>:<election>:participant;<host>:<client>`. */
  readonly line: string;
}

type Ports = [client: number, secure: number, quorum: number, election: number];
