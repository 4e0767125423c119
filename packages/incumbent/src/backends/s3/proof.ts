import { StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';
import { onAbort } from '../../base/wait.ts';
import type { TagForm } from './etag.ts';
import type { Condition, Found, Objects, PutResult } from './objects.ts';

/** In one go; others that prove it at the same time make it some more. */
const mostSteps = 60;

/**
 * Proves that an endpoint honours conditions, and in which form it wants ETags: an endpoint that
 * ignores them confirms every write, and so elects everybody. Some do ignore them without a word.
 *
 * It needs one object that nobody deletes. Others that prove the same, at the same time, replace it:
 * a refusal shows nothing unless the object is still what it was, and then their write, of which the
 * object says in which form its condition was, shows as much as ours would have. So does one of ours
 * whose answer was lost.
 *
 * Each step is one request, and what it has shown stays shown when the next one takes too long.
 */
export class ConditionProof {
  readonly #objects: Objects;
  readonly #key: string;
  readonly #forms: readonly TagForm[];
  /** As it was last seen; undefined: it is to be looked at. */
  #tag: string | undefined;
  #isMissing = false;
  #keepsWhatIsThere = false;
  #creations = 0;
  readonly #refusesWrong = new Set<TagForm>();
  readonly #refusesRight = new Set<TagForm>();
  /** Refused on what was last seen, which may have been another by then. */
  #doubt: { readonly form: TagForm; readonly isRefused: boolean } | undefined;
  /** A write of others was taken that had this form. */
  #shownByOthers: TagForm | undefined;

  constructor(objects: Objects, key: string, forms: readonly TagForm[]) {
    this.#objects = objects;
    this.#key = key;
    this.#forms = forms;
  }

  /**
   * Goes on where it was.
   * @throws StoreUnsuitableError when it is refuted, StoreUnavailableError when others do not let it end
   */
  async run(uniqueId: () => string, signal: AbortSignal): Promise<TagForm> {
    for (let steps = 0; steps < mostSteps; steps += 1) {
      const form = await this.#step(uniqueId, signal);
      if (form !== undefined) return form;
    }
    throw new StoreUnavailableError(
      `others were at the object "${this.#key}", on which this S3 endpoint is proved, all the time`,
    );
  }

  /** One request. @returns the form, once it is proved */
  async #step(uniqueId: () => string, signal: AbortSignal): Promise<TagForm | undefined> {
    const put = (condition: Condition): Promise<PutResult> => {
      const form = condition === 'absent' ? undefined : condition.form;
      const text = JSON.stringify({ incumbent: 'probe', id: uniqueId(), form });
      return this.#objects.put(this.#key, text, condition, signal);
    };
    if (this.#isMissing || (this.#tag !== undefined && !this.#keepsWhatIsThere)) {
      return this.#make(await put('absent'));
    }
    if (this.#tag === undefined || this.#doubt !== undefined) {
      return this.#see(await this.#objects.get(this.#key, signal));
    }
    const form = this.#shownByOthers ?? this.#forms.find((each) => !this.#refusesRight.has(each));
    if (form === undefined) throw refusesAll(this.#forms);
    if (!this.#refusesWrong.has(form)) {
      const { outcome } = await put({ tag: wrongTag(uniqueId()), form });
      if (outcome === 'ok') throw ignores('If-Match');
      if (outcome === 'refused') this.#refusesWrong.add(form);
      return undefined;
    }
    if (this.#shownByOthers !== undefined) return form;
    const result = await put({ tag: this.#tag, form });
    if (result.outcome !== 'ok') {
      this.#doubt = { form, isRefused: result.outcome === 'refused' };
      return undefined;
    }
    if (result.tag !== this.#tag) return form;
    throw new StoreUnsuitableError(
      `this S3 endpoint gives two versions of the object "${this.#key}" the same ETag, so that nobody ` +
        'can tell them apart: no election can be held on it',
    );
  }

  /** It was to be made, and must not be where it is already. */
  #make(result: PutResult): undefined {
    const wasThere = !this.#isMissing;
    if (result.outcome !== 'ok') {
      if (result.outcome === 'busy') return;
      this.#isMissing = false;
      this.#keepsWhatIsThere ||= wasThere;
      return;
    }
    this.#isMissing = false;
    this.#tag = result.tag;
    // Once it may have been deleted since it was seen.
    if (wasThere) this.#creations += 1;
    if (this.#creations > 1) throw ignores('If-None-Match: *');
  }

  #see(found: Found | undefined): undefined {
    const { form, isRefused } = this.#doubt ?? {};
    this.#doubt = undefined;
    const isSame = found !== undefined && found.tag === this.#tag;
    this.#tag = found?.tag;
    this.#isMissing = found === undefined;
    if (form === undefined) return;
    if (!isSame) {
      this.#shownByOthers = this.#forms.find((each) => found?.text.includes(`"form":"${each}"`));
    } else if (isRefused === true) {
      this.#refusesRight.add(form);
    }
  }
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

/** Made once for all elections of a backend; who comes meanwhile waits for it. */
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
