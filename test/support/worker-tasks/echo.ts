// Worker task for tests: returns its input.

export default function echo(input: unknown): unknown {
  return input;
}
