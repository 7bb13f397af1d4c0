// The variables that a process with an environment of its own still takes from the test run: those that shorten its
// start (shorten-starts.js). Its program reads none of them.

const NAMES = ['NODE_OPTIONS', 'NODE_COMPILE_CACHE', 'TOLLGATE_TEST_STRIPPED'];

export const RUN_ENVIRONMENT: Readonly<Record<string, string>> = Object.fromEntries(
  NAMES.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  }),
);
