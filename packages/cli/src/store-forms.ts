/** The URL of each store, for helps and refusals. Loads nothing. */

/** Candidates of one machine. */
export const fileForm = 'file:/some/directory';
/** Candidates of any number of machines. */
export const serverForms: readonly string[] = [
  'postgres://host/database',
  'redis://host',
  'etcd://h1,h2,h3',
  'zk://h1,h2,h3',
  'k8s://namespace',
  's3://bucket',
  'gs://bucket',
];

/** `a, b or c` */
export function anyOf(forms: readonly string[]): string {
  return `${forms.slice(0, -1).join(', ')} or ${forms.at(-1)}`;
}
