// Worker task for tests: never ends and never yields.

export default function spin(): never {
  for (;;);
}
