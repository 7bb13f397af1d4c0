// Worker task for tests: fails in the way its input names.

export default async function fail(how: 'throw' | 'exit' | 'memory' | 'uncaught'): Promise<void> {
  if (how === 'throw') throw new Error('thrown by the task');
  if (how === 'exit') process.exit(3);
  if (how === 'uncaught')
    setImmediate(() => {
      throw new Error('thrown by nobody');
    });
  const hoard: number[][] = [];
  const piece = Array.from({ length: how === 'memory' ? 500_000 : 0 }, Math.random);
  while (how === 'memory') hoard.push(piece.slice());
  await new Promise(() => {});
}
