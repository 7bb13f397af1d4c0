// What a file of a batch (run-batch.ts) gets for `node:test`: while the file is loaded its declarations are kept, to be
// made later within the suite that has its name. node:test itself takes what is declared while a file is loaded for a
// part of the whole process, hooks as well.

import * as nodeTest from 'node:test';

type Declare = (...args: never[]) => unknown;

const real = nodeTest as unknown as Readonly<Record<'test' | 'describe' | Hook, Declare>>;
type Hook = 'before' | 'after' | 'beforeEach' | 'afterEach';

/** null: none is loaded, and every declaration is made at once. */
let kept: (() => unknown)[] | null = null;

const keeping =
  <Kind extends Declare>(declare: Kind) =>
  (...args: Parameters<Kind>): void => {
    kept?.push(() => declare(...args));
  };

// A module sees the value that these have when it calls them.
export let { test, describe, before, after, beforeEach, afterEach } = real;
// node:test has it by both names.
export { test as default };

/** What `load` declares, to be made by the function that it resolves to. */
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
