/** Managers and clients that are broken on purpose: a run that does not find them proves nothing. */

/** The breakages that `ManagerHooks` and the hooks of a client know. */
export type ManagerBroken = 'no-view-wait' | 'no-manager-fence' | 'any-replica' | 'no-pause';
export type ClientBroken = 'no-reply-rule' | 'no-view';

export type Broken =
  | 'no-view-wait'
  | 'no-manager-fence'
  | 'any-replica'
  | 'no-pause'
  | 'no-reply-rule'
  | 'no-view';

interface Form {
  readonly about: string;
  readonly manager?: readonly ManagerBroken[];
  readonly client?: readonly ClientBroken[];
}

export const brokenForms: Readonly<Record<Broken, Form>> = {
  'no-view-wait': {
    about: 'a new primary is published while clients may still believe in a silent one',
    manager: ['no-view-wait'],
  },
  'no-manager-fence': {
    about: 'connections of earlier managers stay open, with what is on its way in them',
    manager: ['no-manager-fence'],
  },
  'any-replica': {
    about: 'a replica is promoted whatever it lacks',
    manager: ['any-replica'],
  },
  'no-pause': {
    about: 'a primary that answers goes on taking writes while another one takes over',
    manager: ['no-pause'],
  },
  'no-reply-rule': {
    about: 'clients take each reply for an acknowledgement, however old their view is',
    client: ['no-reply-rule'],
  },
  'no-view': {
    about: 'clients go on writing to the primary that they knew last',
    client: ['no-view', 'no-reply-rule'],
  },
};
