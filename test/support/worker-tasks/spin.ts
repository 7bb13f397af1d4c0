// Worker task for tests: never ends and never yields. It signals that it runs, if its caller waits for that.

import { type BegunFlag, tellBegun } from '../../../src/platform/begun-flag.ts';

export default function spin(begun: BegunFlag | null): never {
  if (begun !== null) tellBegun(begun);
  for (;;);
}
