/**
 * The names that CONFIG GET and SET know here. Names as in redis.conf; those of before 5.0 mean the
 * same.
 */
const defaults = {
  appendfsync: 'everysec',
  appendonly: 'no',
  masterauth: '',
  masteruser: '',
  'min-replicas-max-lag': '10',
  'min-replicas-to-write': '0',
  'rdb-del-sync-files': 'no',
  'repl-backlog-size': '1048576',
  'repl-backlog-ttl': '3600',
  'repl-diskless-load': 'disabled',
  'repl-diskless-sync': 'yes',
  'repl-diskless-sync-delay': '5',
  'repl-ping-replica-period': '10',
  'repl-timeout': '60',
  'replica-priority': '100',
  'replica-read-only': 'yes',
  'replica-serve-stale-data': 'yes',
  requirepass: '',
  /** Seconds and changes: after that many of both it is saved. */
  save: '3600 1 300 100 60 10000',
  'shutdown-timeout': '10',
} as const;

export type SettingName = keyof typeof defaults;
export type GivenSettings = Readonly<Partial<Record<SettingName | 'replicaof', string>>>;

const choices: Readonly<Partial<Record<SettingName, readonly string[]>>> = {
  appendfsync: ['always', 'everysec', 'no'],
  'repl-diskless-load': ['disabled', 'on-empty-db', 'swapdb'],
};
const sizes: ReadonlySet<string> = new Set<SettingName>(['repl-backlog-size']);

export class Settings {
  readonly #values: Map<SettingName, string>;

  constructor(given: GivenSettings) {
    this.#values = new Map(Object.entries(defaults) as [SettingName, string][]);
    for (const [name, value] of Object.entries(given)) {
      if (name !== 'replicaof') this.set(name, value);
    }
  }

  text(name: SettingName): string {
    return this.#values.get(name) as string;
  }

  count(name: SettingName): number {
    return Number(this.text(name));
  }

  isOn(name: SettingName): boolean {
    return this.text(name) === 'yes';
  }

  /** Anything is written to disk for later (`allPersistenceDisabled`). */
  get keepsData(): boolean {
    return this.savePoints.length > 0 || this.isOn('appendonly');
  }

  get savePoints(): readonly { readonly seconds: number; readonly changes: number }[] {
    const numbers = this.text('save').split(' ').filter(Boolean).map(Number);
    return Array.from({ length: numbers.length / 2 }, (_, index) => ({
      seconds: numbers[2 * index] as number,
      changes: numbers[2 * index + 1] as number,
    }));
  }

  /** @returns names and values in turn, as CONFIG GET answers */
  match(pattern: string): string[] {
    const name = modern(pattern.toLowerCase());
    if (isSetting(name)) return [pattern.toLowerCase(), this.text(name)];
    if (!name.includes('*')) return [];
    const matches = new RegExp(`^${name.replaceAll('*', '.*')}$`);
    return [...this.#values].filter(([each]) => matches.test(each)).flat();
  }

  /** @throws RangeError with what a server says */
  set(given: string, value: string): SettingName {
    const name = modern(given.toLowerCase());
    if (!isSetting(name)) {
      throw new RangeError(`Unknown option or number of arguments for CONFIG SET - '${given}'`);
    }
    const known = choices[name] ?? (isYesNo(defaults[name]) ? ['yes', 'no'] : undefined);
    const isNumber = /^\d+$/.test(defaults[name]);
    if (known?.includes(value) === false || (isNumber && !/^\d+(kb|mb)?$/i.test(value))) {
      throw new RangeError(`CONFIG SET failed (possibly related to argument '${given}')`);
    }
    this.#values.set(name, sizes.has(name) ? String(bytesOf(value)) : value);
    return name;
  }

  /** The settings that CONFIG REWRITE writes: whatever is not as it was to begin with. */
  changed(): GivenSettings {
    return Object.fromEntries(
      [...this.#values].filter(([name, value]) => defaults[name] !== value),
    );
  }
}

function isSetting(name: string): name is SettingName {
  return Object.hasOwn(defaults, name);
}

function isYesNo(value: string): boolean {
  return value === 'yes' || value === 'no';
}

function modern(name: string): string {
  return name.replace('slaves', 'replicas').replace('slave', 'replica');
}

function bytesOf(value: string): number {
  const unit = /kb$/i.test(value) ? 1024 : /mb$/i.test(value) ? 1024 ** 2 : 1;
  return Number.parseInt(value, 10) * unit;
}
