// The marks of a run: sixteen characters that say whose bytes these are. Everything that a tenant sends or receives is
// filled with its own marks.

/**
 * Who may see a mark. `p`: from the client, may pass to a provider. `c`: from the client (credential, labels), for the
 * gateway alone. `r`: from a provider, in its reply. `k`: in an organization's own provider key, for that provider.
 */
export type MarkKind = 'p' | 'c' | 'r' | 'k';

export interface FoundMark {
  readonly tenant: number;
  readonly kind: MarkKind;
  /** The number of the exchange; 0: the mark is the tenant's, in all of its exchanges. */
  readonly exchange: number;
}

const MARK_BYTES = 16;
const PATTERN = /mk(\d\d)([pcrk])(\d{11})/g;

/** Makes a mark, which may stand in JSON, in a header, in a URL, in a tag and in a form. */
export function markOf(tenant: number, kind: MarkKind, exchange: number): string {
  return `mk${String(tenant).padStart(2, '0')}${kind}${String(exchange).padStart(11, '0')}`;
}

/** Fills this many bytes with repetitions of the mark; the last repetition may be cut. */
export function filled(mark: string, bytes: number): Buffer {
  return Buffer.alloc(bytes, mark, 'latin1');
}

export function findMarks(text: string): FoundMark[] {
  return [...text.matchAll(PATTERN)].map(([, tenant, kind, exchange]) => ({
    tenant: Number(tenant),
    kind: kind as MarkKind,
    exchange: Number(exchange),
  }));
}

/** The first exchange that the text names; null: none. */
export function findExchange(text: string): number | null {
  return findMarks(text).find(({ kind, exchange }) => kind === 'p' && exchange > 0)?.exchange ?? null;
}

/** Finds marks that do not belong to this tenant's exchange: their total length, and the first of them. */
export function foreignBytes(
  bytes: Buffer,
  own: { readonly tenant: number; readonly index: number },
): { readonly bytes: number; readonly first: FoundMark | null } {
  const foreign = findMarks(bytes.toString('latin1')).filter(
    ({ tenant, exchange }) => tenant !== own.tenant || (exchange !== 0 && exchange !== own.index),
  );
  return { bytes: foreign.length * MARK_BYTES, first: foreign[0] ?? null };
}
