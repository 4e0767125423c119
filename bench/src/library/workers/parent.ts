/** Shared by all workers: each gets one argument, exchanges messages, and ends with its parent. */

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
