/** ETags as endpoints give and want them. */

/** How a condition names an ETag: `"abc"` as HTTP has it, or `abc` as Ceph RGW and others want it. */
export type TagForm = 'quoted' | 'unquoted';

/**
 * An ETag without quotes and without the mark that a proxy has changed how the object is sent: two
 * endpoints of one bucket may differ in both.
 */
export function bareTag(etag: string): string {
  return /^(?:W\/)?"(.*)"$/s.exec(etag)?.[1] ?? etag;
}

export function writeTag(bare: string, form: TagForm): string {
  return form === 'quoted' ? `"${bare}"` : bare;
}
