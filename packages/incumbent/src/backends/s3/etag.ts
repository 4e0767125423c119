/** ETags as endpoints return and demand them. */

/** How a condition names an ETag: `"abc"` as in HTTP, or `abc` as Ceph RGW and others demand. */
export type TagForm = 'quoted' | 'unquoted';

/**
 * An ETag without quotes, and without the mark of a proxy that has changed how the object is sent.
 * Two endpoints of one bucket may differ in both.
 */
export function bareTag(etag: string): string {
  return /^(?:W\/)?"(.*)"$/s.exec(etag)?.[1] ?? etag;
}

export function writeTag(bare: string, form: TagForm): string {
  return form === 'quoted' ? `"${bare}"` : bare;
}
