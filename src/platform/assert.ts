// Assertions of what must always hold. A failed assertion is a bug of ours, thrown as a fault and never shown to a
// client.

class AssertionFault extends Error {
  override readonly name = 'AssertionFault';
}

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionFault(message);
}
