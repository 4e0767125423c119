/** Counts what the campaigns of this process do. Adapters read it, each in the form of its library. */
import type { Clock } from '../base/clock.ts';
import type { FollowedCampaign } from './campaigns.ts';
import { Campaigns } from './campaigns.ts';
import type {
  Attributes,
  CounterName,
  ElectionInstrument,
  GaugeName,
  HistogramName,
  InstrumentName,
} from './instruments.ts';
import { electionInstruments } from './instruments.ts';
import type { ElectionAttribute } from './options.ts';
import { otherElections } from './options.ts';

export interface Point {
  readonly attributes: Attributes;
  value: number;
}

/** The values of one histogram with the same attributes. */
export interface Distribution {
  readonly attributes: Attributes;
  /** How many values are in each bucket, and at last how many are above all. */
  readonly counts: number[];
  sum: number;
  count: number;
}

/** Hears of each value of a histogram. */
export type HearDuration = (name: HistogramName, seconds: number, attributes: Attributes) => void;

/** Elections that are counted together. */
interface Group {
  readonly attributes: Attributes;
  /** Its token and its seats can be told: it is one election. */
  readonly isOne: boolean;
  /** The values of the attribute `seat`. Empty: the attribute is left out. */
  seats: readonly string[];
  readonly points: Map<CounterName, ReadonlyMap<string, Point>>;
  readonly distributions: ReadonlyMap<HistogramName, ReadonlyMap<string, Distribution>>;
}

export class Tally {
  readonly #attribute: ElectionAttribute;
  readonly #hear: HearDuration | undefined;
  readonly #campaigns: Campaigns;
  readonly #groups = new Map<string, Group>();
  readonly #groupOf = new WeakMap<FollowedCampaign, Group>();

  constructor(clock: Clock, attribute: ElectionAttribute, hear?: HearDuration) {
    this.#attribute = attribute;
    this.#hear = hear;
    const count = (name: CounterName) => (campaign: FollowedCampaign) =>
      this.#add(this.#of(campaign), name);
    this.#campaigns = new Campaigns(clock, {
      // So that all counters are there, at zero, before the first of them counts.
      begins: (campaign) => void this.#of(campaign),
      leads: (campaign, { predecessor, seat }, tookMs) => {
        const group = this.#of(campaign);
        this.#add(group, 'incumbent.term.starts', group.seats.length > 0 ? String(seat) : '');
        this.#record(group, 'incumbent.takeover.duration', tookMs, predecessor);
      },
      ends: (campaign, _term, { reason, released, tookMs }) => {
        const group = this.#of(campaign);
        this.#add(group, 'incumbent.term.ends', reason);
        if (!released) this.#add(group, 'incumbent.term.abandoned');
        else if (tookMs !== undefined) this.#record(group, 'incumbent.handover.duration', tookMs);
      },
      confirms: (campaign, elapsedMs) =>
        this.#record(this.#of(campaign), 'incumbent.confirmation.duration', elapsedMs),
      failsToConfirm: count('incumbent.confirmation.failures'),
      failsToTakeOver: count('incumbent.takeover.failures'),
      overruns: count('incumbent.overruns'),
      hasTrouble: (election) => this.#add(this.#groupFor(election), 'incumbent.troubles'),
    });
  }

  close(): void {
    this.#campaigns.close();
  }

  /**
   * The state of the campaigns now. Elections that were met once stay, at 0: OpenTelemetry's SDK
   * would go on telling the last value of a point that is gone.
   */
  gauges(name: GaugeName): Iterable<Point> {
    const { over, perSeat } =
      electionInstruments.find((instrument) => instrument.name === name) ?? {};
    const seatsIn = ({ seats }: Group) => (perSeat && seats.length > 0 ? seats : ['']);
    const told = new Map<Group, Map<string, number>>();
    for (const campaign of this.#campaigns) {
      const group = this.#of(campaign);
      const value = gaugeOf(name, campaign);
      if (value === undefined) continue;
      const values = told.get(group) ?? new Map<string, number>();
      told.set(group, values);
      const [seat = ''] = seatsIn(group).filter((each) => each === String(campaign.term?.seat));
      const before = values.get(seat);
      if (before === undefined) values.set(seat, value);
      else values.set(seat, over === 'sum' ? before + value : Math[over ?? 'max'](before, value));
    }
    return [...this.#groups.values()]
      .filter(({ isOne }) => isOne || name !== 'incumbent.token')
      .flatMap((group) =>
        seatsIn(group).map((seat) => ({
          attributes: ofSeat(group.attributes, seat),
          value: told.get(group)?.get(seat) ?? 0,
        })),
      );
  }

  *counters(name: CounterName): Iterable<Point> {
    for (const { points } of this.#groups.values()) yield* points.get(name)?.values() ?? [];
  }

  *histograms(name: HistogramName): Iterable<Distribution> {
    for (const { distributions } of this.#groups.values()) {
      yield* distributions.get(name)?.values() ?? [];
    }
  }

  /** Counts from zero again. */
  reset(name: InstrumentName): void {
    for (const { points, distributions } of this.#groups.values()) {
      for (const point of points.get(name as CounterName)?.values() ?? []) point.value = 0;
      for (const one of distributions.get(name as HistogramName)?.values() ?? []) {
        one.counts.fill(0);
        one.sum = 0;
        one.count = 0;
      }
    }
  }

  #add(group: Group, name: CounterName, by = ''): void {
    const point = group.points.get(name)?.get(by);
    if (point !== undefined) point.value += 1;
  }

  #record(group: Group, name: HistogramName, ms: number, by = ''): void {
    const distribution = group.distributions.get(name)?.get(by);
    if (distribution === undefined) return;
    const seconds = ms / 1_000;
    const { counts, attributes } = distribution;
    const buckets = bucketsOf.get(name) ?? [];
    const at = buckets.findIndex((bound) => seconds <= bound);
    const index = at < 0 ? buckets.length : at;
    counts[index] = (counts[index] ?? 0) + 1;
    distribution.sum += seconds;
    distribution.count += 1;
    this.#hear?.(name, seconds, attributes);
  }

  #of(campaign: FollowedCampaign): Group {
    let group = this.#groupOf.get(campaign);
    if (group === undefined) {
      group = this.#groupFor(campaign.election);
      if (group.isOne && campaign.seats > 1) addSeats(group, campaign.seats);
      this.#groupOf.set(campaign, group);
    }
    return group;
  }

  #groupFor(election: string): Group {
    const value = this.#attribute.valueFor(election);
    const key = value ?? '';
    let group = this.#groups.get(key);
    if (group === undefined) {
      const attributes = value === undefined ? {} : { election: value };
      group = newGroup(attributes, this.#attribute.isName && value !== otherElections);
      this.#groups.set(key, group);
    }
    return group;
  }
}

function ofSeat(attributes: Attributes, seat: string): Attributes {
  return seat === '' ? attributes : { ...attributes, seat };
}

/** An election may have been heard of before it was known to have several seats. */
function addSeats(group: Group, count: number): void {
  if (group.seats.length > 0) return;
  group.seats = Array.from({ length: count }, (_, index) => String(index + 1));
  for (const { name, perSeat } of electionInstruments) {
    const points = group.points.get(name as CounterName);
    if (!perSeat || points === undefined) continue;
    const point = (seat: string) => ({ attributes: ofSeat(group.attributes, seat), value: 0 });
    group.points.set(name as CounterName, new Map(group.seats.map((seat) => [seat, point(seat)])));
  }
}

const bucketsOf = new Map<string, readonly number[]>(
  electionInstruments.flatMap(({ name, buckets }) => (buckets ? [[name, buckets] as const] : [])),
);

function newGroup(attributes: Attributes, isOne: boolean): Group {
  const each = <Value>(
    { by }: ElectionInstrument,
    make: (attributes: Attributes) => Value,
  ): ReadonlyMap<string, Value> =>
    by === undefined
      ? new Map([['', make(attributes)]])
      : new Map(by.values.map((value) => [value, make({ ...attributes, [by.name]: value })]));
  const points = new Map<CounterName, ReadonlyMap<string, Point>>();
  const distributions = new Map<HistogramName, ReadonlyMap<string, Distribution>>();
  for (const instrument of electionInstruments) {
    const { name, kind, buckets = [] } = instrument;
    if (kind === 'counter') {
      points.set(
        name as CounterName,
        each(instrument, (own) => ({ attributes: own, value: 0 })),
      );
    } else if (kind === 'histogram') {
      const counts = () => new Array<number>(buckets.length + 1).fill(0);
      distributions.set(
        name as HistogramName,
        each(instrument, (own) => ({ attributes: own, counts: counts(), sum: 0, count: 0 })),
      );
    }
  }
  return { attributes, isOne, seats: [], points, distributions };
}

/** Undefined: the campaign does not count in this gauge. */
function gaugeOf(name: GaugeName, campaign: FollowedCampaign): number | undefined {
  const { term, isUnhealthy } = campaign;
  const leftMs = campaign.leftMs();
  const isLeading = leftMs > 0;
  switch (name) {
    case 'incumbent.leading':
      return Number(isLeading);
    case 'incumbent.candidates.waiting':
      return Number(!isLeading);
    case 'incumbent.candidates.unhealthy':
      return Number(isUnhealthy);
    case 'incumbent.ready':
      return Number(isLeading && term?.isReady === true && term.stoppingMs === undefined);
    case 'incumbent.token':
      return isLeading ? Number(term?.token) : undefined;
    case 'incumbent.belief.remaining':
      return isLeading ? leftMs / 1_000 : undefined;
    case 'incumbent.belief.limit':
      return isLeading ? (term?.beliefMs ?? 0) / 1_000 : undefined;
  }
}
