// What a process that starts with an environment of its own takes from the test run all the same: what makes its start
// short (shorten-starts.js), nothing that its program reads.

const NAMES = ['NODE_OPTIONS', 'NODE_COMPILE_CACHE', 'TOLLGATE_TEST_STRIPPED'];

export const RUN_ENVIRONMENT: Readonly<Record<string, string>> = Object.fromEntries(
  NAMES.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  }),
);
