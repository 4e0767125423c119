/** What all workers share: they are given one argument, tell, are told, and end with their parent. */

export function readArgument<T>(): T {
  return JSON.parse(process.argv[2] ?? '{}');
}

export function tell(message: object): void {
  process.send?.(message);
}

export function onOrder<Order>(listener: (order: Order) => void): void {
  process.on('message', (order) => listener(order as Order));
}

process.on('disconnect', () => process.exit(0));
