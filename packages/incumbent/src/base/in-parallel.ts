/** Runs `job` for every item, and for at most `most` of them at once. The results keep the order. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  most: number,
  job: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next;
      next += 1;
      results[index] = await job(items[index] as Item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, worker));
  return results;
}
