import { StoreUnavailableError, StoreUnsuitableError } from '../../errors.ts';
import { onAbort } from '../../wait.ts';
import type { TagForm } from './etag.ts';
import type { Condition, Objects, PutResult } from './objects.ts';

/** Others may prove it at the same time: few are needed. */
const mostRounds = 20;

/**
 * Proves that an endpoint honours conditions, and in which form it wants ETags: an endpoint that
 * ignores them confirms every write, and so elects everybody. Some do ignore them without a word.
 *
 * It needs one object that nobody deletes. Others that prove the same, at the same time, replace it:
 * a refusal shows nothing unless the object is still what it was, and then their write, of which the
 * object says in which form its condition was, shows as much as ours would have.
 */
export async function proveConditions(
  objects: Objects,
  key: string,
  forms: readonly TagForm[],
  uniqueId: () => string,
  signal: AbortSignal,
): Promise<TagForm> {
  const put = (condition: Condition): Promise<PutResult> => {
    const form = condition === 'absent' ? undefined : condition.form;
    const text = JSON.stringify({ incumbent: 'probe', id: uniqueId(), form });
    return objects.put(key, text, condition, signal);
  };
  let creations = 0;
  let keepsWhatIsThere = false;
  const refusesWrong = new Set<TagForm>();
  const refusesRight = new Set<TagForm>();
  /** @returns false: nothing was shown */
  const wrongIsRefused = async (form: TagForm): Promise<boolean> => {
    if (refusesWrong.has(form)) return true;
    const { outcome } = await put({ tag: wrongTag(uniqueId()), form });
    if (outcome === 'ok') throw ignores('If-Match');
    if (outcome === 'refused') refusesWrong.add(form);
    return outcome === 'refused';
  };
  for (let round = 0; round < mostRounds; round += 1) {
    const found = await objects.get(key, signal);
    if (found === undefined) {
      await put('absent');
      continue;
    }
    if (!keepsWhatIsThere) {
      const { outcome } = await put('absent');
      // Once it may have been deleted since it was read.
      if (outcome === 'ok') creations += 1;
      if (creations > 1) throw ignores('If-None-Match: *');
      if (outcome !== 'refused') continue;
      keepsWhatIsThere = true;
    }
    const form = forms.find((each) => !refusesRight.has(each));
    if (form === undefined) throw refusesAll(forms);
    if (!(await wrongIsRefused(form))) continue;
    const result = await put({ tag: found.tag, form });
    if (result.outcome === 'ok') {
      if (result.tag !== found.tag) return form;
      throw new StoreUnsuitableError(
        `this S3 endpoint gives two versions of the object "${key}" the same ETag, so that nobody can ` +
          'tell them apart: no election can be held on it',
      );
    }
    const now = await objects.get(key, signal);
    if (now?.tag === found.tag) {
      if (result.outcome === 'refused') refusesRight.add(form);
      continue;
    }
    const others = forms.find((each) => now?.text.includes(`"form":"${each}"`));
    if (others !== undefined && (await wrongIsRefused(others))) return others;
  }
  throw new StoreUnavailableError(
    `others were at the object "${key}", on which this S3 endpoint is proved, ${mostRounds} times`,
  );
}

function ignores(header: string): StoreUnsuitableError {
  return new StoreUnsuitableError(
    `this S3 endpoint ignores ${header}: it took a write whose condition was not met, so that ` +
      'everybody would be elected; no election can be held on it',
  );
}

function refusesAll(forms: readonly TagForm[]): StoreUnsuitableError {
  const wayOut = forms.length > 1 ? '' : '; leave out etagQuotes, or say the other one';
  return new StoreUnsuitableError(
    `this S3 endpoint refuses If-Match with the right ETag (${forms.join(' and ')}), so that nobody ` +
      `could renew: no election can be held on it${wayOut}`,
  );
}

/** As long as an MD5, and none that anybody has. */
function wrongTag(uniqueId: string): string {
  return Buffer.from(uniqueId).toString('hex').padEnd(32, '0').slice(0, 32);
}

/** Done once for all elections of a backend; who comes meanwhile waits for it. */
export class Proof {
  readonly #prove: (uniqueId: () => string, signal: AbortSignal) => Promise<TagForm>;
  #form: TagForm | undefined;
  #running: Promise<unknown> | undefined;

  constructor(
    prove: (uniqueId: () => string, signal: AbortSignal) => Promise<TagForm>,
    form?: TagForm,
  ) {
    this.#prove = prove;
    this.#form = form;
  }

  /** @throws what the proof throws; `signal.reason` */
  async form(uniqueId: () => string, signal: AbortSignal): Promise<TagForm> {
    while (this.#form === undefined) {
      if (this.#running !== undefined) {
        // Its signal is not ours: whoever runs it may give up, and then it is our turn.
        await settled(this.#running, signal);
        continue;
      }
      const running = this.#prove(uniqueId, signal);
      this.#running = running;
      try {
        this.#form = await running;
      } finally {
        this.#running = undefined;
      }
    }
    return this.#form;
  }
}

/** Resolves when it is over, whatever became of it. */
function settled(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const unlisten = onAbort(signal, () => reject(signal.reason));
    const finish = () => {
      unlisten();
      resolve();
    };
    promise.then(finish, finish);
  });
}
