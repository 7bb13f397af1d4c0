// Worker task for tests: never ends and never yields. It says that it runs where its caller waits for that.

export default function spin(begun: Int32Array | null): never {
  if (begun !== null) {
    Atomics.store(begun, 0, 1);
    Atomics.notify(begun, 0);
  }
  for (;;);
}
