// How processes call about a wallet or a limit, and tests in their place: a call gives up a lock early, and has done
// nothing, so it is made again; a process makes one at a time.

import { StoreBusy } from '../../src/platform/store-busy.ts';

export async function untilNotLocked<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (fault) {
      if (!(fault instanceof StoreBusy)) throw fault;
    }
  }
}

export async function callInTurn<T>(times: number, call: () => Promise<T>): Promise<T[]> {
  const answers: T[] = [];
  while (answers.length < times) answers.push(await untilNotLocked(call));
  return answers;
}
