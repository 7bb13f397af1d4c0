// Replaces `node:test` for a file of a batch (run-batch.ts): keeps the file's declarations while it is loaded, and
// makes them later within the suite that has its name. node:test itself would declare them, hooks included, for the
// whole process.

import * as nodeTest from 'node:test';

type Declare = (...args: never[]) => unknown;

const real = nodeTest as unknown as Readonly<Record<'test' | 'describe' | Hook, Declare>>;
type Hook = 'before' | 'after' | 'beforeEach' | 'afterEach';

/** null: no file is being loaded, and every declaration is made at once. */
let kept: (() => unknown)[] | null = null;

const keeping =
  <Kind extends Declare>(declare: Kind) =>
  (...args: Parameters<Kind>): void => {
    kept?.push(() => declare(...args));
  };

// An importing module sees the values that these bindings have when it calls them.
export let { test, describe, before, after, beforeEach, afterEach } = real;
// node:test exports `test` under both names.
export { test as default };

/** Loads a file, and resolves with a function that makes the declarations of that file. */
export async function keepDeclarations(load: () => Promise<unknown>): Promise<() => void> {
  const declarations: (() => unknown)[] = [];
  kept = declarations;
  use(keeping);
  try {
    await load();
  } finally {
    use((declare) => declare);
    kept = null;
  }
  return () => {
    for (const declare of declarations) void declare();
  };
}

function use(as: (declare: Declare) => Declare): void {
  test = as(real.test);
  describe = as(real.describe);
  before = as(real.before);
  after = as(real.after);
  beforeEach = as(real.beforeEach);
  afterEach = as(real.afterEach);
}
