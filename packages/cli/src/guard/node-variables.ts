/** NODE_OPTIONS and the like are for the user's programs, and not for helpers of ours. */
export function withoutNodeVariables<Value>(
  env: Readonly<Record<string, Value>>,
): Record<string, Value> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('NODE_')));
}
