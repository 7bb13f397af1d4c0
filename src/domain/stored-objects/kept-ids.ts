// Decides which ids of a provider's responses and of their items are kept, so that their caller may refer to them later
// (spec 4.2). A reply with any other id is relayed as it is, and nobody can refer to it.
//
// Providers choose the ids. An id that Postgres cannot hold as text or cannot index would prevent an execution, and its
// charge, from being posted. None of the allowed characters is escaped in JSON, and those of a response's id need no
// escape in a path (RFC 3986, pchar).

const RESPONSE_ID = /^[\w.~!$&'()*+,;=:@-]{1,256}$/;
const ITEM_ID = /^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/;

/** The longest id that is kept. */
export const KEPT_ID_BYTES_MAX = 256;
/** The most items of a response that are kept. */
export const KEPT_ITEMS_MAX = 64;

export function isKeptResponseId(id: string): boolean {
  return RESPONSE_ID.test(id);
}

export function isKeptItemId(id: string): boolean {
  return ITEM_ID.test(id);
}
