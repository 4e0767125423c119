import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ShownElection, Steering } from '../../src/dashboard/shown.ts';
import { act, maySteer } from '../shared/steer.ts';

type Kind = Steering['act'];

interface Ask {
  readonly kind: Kind;
  readonly shown: ShownElection;
}

const asked = signal<Ask | undefined>(undefined);
/** The answer of the command to the last request. */
const answer = signal<{ readonly isGood: boolean; readonly words: string } | undefined>(undefined);

const titles: Readonly<Record<Kind, string>> = {
  vacate: 'Ask the leader to go',
  transfer: 'Hand over to…',
  drain: 'Keep a candidate out…',
  lift: 'Let a candidate in again…',
  end: 'End the election',
  reopen: 'Open it again',
};

/** Only what can be done now. */
function possible({ state, waiting, drains }: ShownElection): readonly Kind[] {
  if (state === 'ended') return ['reopen'];
  return [
    ...(state === 'led' ? (['vacate'] as const) : []),
    ...(state === 'led' && (waiting === null || waiting.length > 0) ? (['transfer'] as const) : []),
    'drain',
    ...(drains.length > 0 ? (['lift'] as const) : []),
    'end',
  ];
}

export function SteerButtons({ shown }: { readonly shown: ShownElection }) {
  useEffect(
    () => () => {
      // They are about this election.
      asked.value = undefined;
      answer.value = undefined;
    },
    [],
  );
  if (!maySteer) {
    return (
      <p class="banner" role="note">
        To steer, open the address that the command has printed, with all behind its #.
      </p>
    );
  }
  return (
    <>
      <fieldset class="steer">
        <legend class="hidden">Steer this election</legend>
        {possible(shown).map((kind) => (
          <button
            key={kind}
            type="button"
            class={kind === 'end' ? 'danger' : ''}
            onClick={() => {
              answer.value = undefined;
              asked.value = { kind, shown };
            }}
          >
            {titles[kind]}
          </button>
        ))}
      </fieldset>
      <p class={`answer tone ${answer.value?.isGood === false ? 'bad' : 'good'}`} role="status">
        {answer.value?.words}
      </p>
      {asked.value !== undefined && <Confirm {...asked.value} />}
    </>
  );
}

function Confirm({ kind, shown }: Ask) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { election, leader, waiting, drains } = shown;
  const leaderId = leader?.id ?? 'the leader';
  const candidates = [...(leader === null ? [] : [leader]), ...(waiting ?? [])].map(({ id }) => id);
  const choices = {
    transfer: waiting?.map(({ id }) => id),
    drain: candidates,
    lift: drains.map(({ id }) => id),
  };
  const ids = kind in choices ? choices[kind as keyof typeof choices] : undefined;
  const [id, setId] = useState(ids?.[0] ?? '');
  const [until, setUntil] = useState('1h');
  const [force, setForce] = useState(false);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const [mine] = useState(() => asked.peek());
  const close = () => {
    // Another one may have been opened since.
    if (asked.peek() === mine) asked.value = undefined;
  };
  const effects: Readonly<Record<Kind, string>> = {
    vacate: force
      ? `The term of ${leaderId} ends, even if its work does not stop. Another candidate leads when the belief of ${leaderId} is over.`
      : `${leaderId} is asked to stop its work and to give the seat up. Then another candidate leads, if one waits.`,
    transfer: `${leaderId} is asked to stop its work and to hand the seat over to ${id || '…'}. For a while nobody else may take it.`,
    drain: `${id || '…'} may not lead until then. If it leads now, it is asked to go.`,
    lift: `${id || '…'} may lead again.`,
    end: `The election ends for everybody: the leader must stop, and nobody can be elected until it is opened again.`,
    reopen: 'Candidates may be elected again.',
  };
  const needsId = kind === 'transfer' || kind === 'drain' || kind === 'lift';
  const commands: Readonly<Record<Kind, string>> = {
    vacate: `vacate -e ${election}${force ? ' --force' : ''}`,
    transfer: `transfer -e ${election} --to ${id}`,
    drain: `drain -e ${election} --id ${id} --until ${until}`,
    lift: `drain -e ${election} --id ${id} --lift`,
    end: `end -e ${election}`,
    reopen: `init -e ${election} --reopen`,
  };
  const send = () => {
    setBusy(true);
    const { store, token } = shown;
    const request = { store, election, token, ...requestOf(kind, { id, until, force }) };
    act<{ readonly said: string }>(request)
      .then(({ said }) => {
        answer.value = { isGood: true, words: said };
      })
      .catch((error: Error) => {
        answer.value = { isGood: false, words: error.message };
      })
      .finally(close);
  };
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="confirm-title">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <h2 id="confirm-title">
          {titles[kind]} <span class="quiet">{election}</span>
        </h2>
        {needsId && <IdField id={id} ids={ids} setId={setId} />}
        {kind === 'drain' && (
          <label>
            Until{' '}
            <input
              required
              value={until}
              onInput={({ currentTarget }) => setUntil(currentTarget.value)}
            />{' '}
            <small class="quiet">such as 30m, 2h, 3d or 2030-05-01T06:00</small>
          </label>
        )}
        {kind === 'vacate' && (
          <label>
            <input
              type="checkbox"
              checked={force}
              onChange={({ currentTarget }) => setForce(currentTarget.checked)}
            />{' '}
            even if its work does not stop
          </label>
        )}
        <p>{effects[kind]}</p>
        <p>
          <code>incumbent {commands[kind]}</code>
        </p>
        <p class="buttons">
          <button type="submit" class={kind === 'end' ? 'danger' : 'primary'} disabled={isBusy}>
            {isBusy ? 'asking…' : 'Do it'}
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </p>
      </form>
    </dialog>
  );
}

function IdField({
  id,
  ids,
  setId,
}: {
  readonly id: string;
  readonly ids: readonly string[] | undefined;
  readonly setId: (id: string) => void;
}) {
  if (ids === undefined || ids.length === 0) {
    return (
      <label>
        Candidate{' '}
        <input required value={id} onInput={({ currentTarget }) => setId(currentTarget.value)} />
      </label>
    );
  }
  return (
    <label>
      Candidate{' '}
      <select value={id} onChange={({ currentTarget }) => setId(currentTarget.value)}>
        {ids.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}

function requestOf(
  kind: Kind,
  { id, until, force }: { readonly id: string; readonly until: string; readonly force: boolean },
): Steering {
  switch (kind) {
    case 'vacate':
      return { act: kind, force };
    case 'transfer':
      return { act: kind, to: id };
    case 'drain':
      return { act: kind, id, until };
    case 'lift':
      return { act: kind, id };
    case 'end':
    case 'reopen':
      return { act: kind };
    default:
      return kind satisfies never;
  }
}
