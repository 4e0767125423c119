import { StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';
import { onAbort } from '../../base/wait.ts';
import type { TagForm } from './etag.ts';
import type { Condition, Found, Objects, PutResult } from './objects.ts';

/** The most requests in one run. Others that prove it at the same time cost some more. */
const mostSteps = 60;

/**
 * Proves that an endpoint honours conditions, and in which form it wants ETags. An endpoint
 * that ignores them confirms every write, and so elects every candidate. Some do ignore them
 * without a word.
 *
 * The proof needs one object that is never deleted. Others that prove the same, at the same time,
 * replace it. So a refusal shows nothing unless the object is still unchanged. If it has changed,
 * the others' write shows as much as ours would have: the object says in which form its condition
 * was. The same goes for one of our own writes whose answer was lost.
 *
 * Each step is one request. Its finding stays when the next one takes too long.
 */
export class ConditionProof {
  readonly #objects: Objects;
  readonly #key: string;
  readonly #forms: readonly TagForm[];
  /** As it was last seen. Undefined: look at it first. */
  #tag: string | undefined;
  #isMissing = false;
  #keepsWhatIsThere = false;
  #creations = 0;
  readonly #refusesWrong = new Set<TagForm>();
  readonly #refusesRight = new Set<TagForm>();
  /** Refused on the tag that was last seen, which may have been another one by then. */
  #doubt: { readonly form: TagForm; readonly isRefused: boolean } | undefined;
  /** A write of others that had this form was accepted. */
  #shownByOthers: TagForm | undefined;

  constructor(objects: Objects, key: string, forms: readonly TagForm[]) {
    this.#objects = objects;
    this.#key = key;
    this.#forms = forms;
  }

  /**
   * Goes on where it stopped.
   * @throws StoreUnsuitableError when it is refuted
   * @throws StoreUnavailableError when others do not let it end
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

  /**
   * Makes one request.
   * @returns the form, once it is proved
   */
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

  /** The object was to be made, and must not be made where it is already. */
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
    // It may have been deleted once since it was seen.
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

/** As long as an MD5, and different from any real one. */
function wrongTag(uniqueId: string): string {
  return Buffer.from(uniqueId).toString('hex').padEnd(32, '0').slice(0, 32);
}

/** Proved once for all elections of a backend. Elections that ask meanwhile wait for it. */
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

  /**
   * @throws the error of the proof
   * @throws `signal.reason` when aborted
   */
  async form(uniqueId: () => string, signal: AbortSignal): Promise<TagForm> {
    while (this.#form === undefined) {
      if (this.#running !== undefined) {
        // Its signal is not ours. The one that runs it may give up, and then it is our turn.
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

/** Resolves when it is over, with whatever outcome. */
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
