// Worker task for tests: fails in the way its input names.

export default async function fail(how: 'throw' | 'exit' | 'memory' | 'uncaught'): Promise<void> {
  if (how === 'throw') throw new Error('thrown by the task');
  if (how === 'exit') process.exit(3);
  if (how === 'uncaught')
    setImmediate(() => {
      throw new Error('thrown by nobody');
    });
  const hoard: number[][] = [];
  while (how === 'memory') hoard.push(Array.from({ length: 100_000 }, Math.random));
  await new Promise(() => {});
}
