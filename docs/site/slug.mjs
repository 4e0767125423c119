/**
 * The anchor of a heading, as the place where the repository is read makes it: a link with an anchor
 * then works there and here.
 */
export function slugOf(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-');
}
