// Worker task for tests: gives its input back.

export default function echo(input: unknown): unknown {
  return input;
}
