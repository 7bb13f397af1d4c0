// Compares a few bytes at a position, for which a native comparison would cost more than the bytes themselves.

export function matchesAt(bytes: Uint8Array, at: number, expected: Uint8Array): boolean {
  const { length } = expected;
  if (at + length > bytes.length) return false;
  for (let index = 0; index < length; index++) if (bytes[at + index] !== expected[index]) return false;
  return true;
}
