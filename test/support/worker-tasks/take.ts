// Worker task for tests: says that it runs, and takes a while.

import { type BegunFlag, tellBegun } from '../../../src/platform/begun-flag.ts';

export default function take({ begun, ms }: { readonly begun: BegunFlag; readonly ms: number }): void {
  tellBegun(begun);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
