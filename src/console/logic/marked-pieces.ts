// Cuts a text into the pieces that guardrails found and the pieces between them.

export interface Piece {
  readonly piece: string;
  readonly isFound: boolean;
}

/** `start` and `end` count UTF-16 code units. Findings may overlap. */
export function markedPieces(
  text: string,
  findings: readonly { readonly start: number; readonly end: number }[],
): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  for (const { start, end } of [...findings].sort((one, other) => one.start - other.start)) {
    if (end <= at) continue;
    const from = Math.max(at, start);
    if (from > at) pieces.push({ piece: text.slice(at, from), isFound: false });
    pieces.push({ piece: text.slice(from, end), isFound: true });
    at = end;
  }
  if (at < text.length) pieces.push({ piece: text.slice(at), isFound: false });
  return pieces;
}
