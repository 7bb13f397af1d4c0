// Which ids of a provider's responses and of their items are kept, so that their caller may refer to them later (spec
// 4.2). A reply with another id is relayed as it is, and nobody can refer to it.
//
// Providers choose the ids. One that Postgres can neither hold as text nor index would keep an execution, and with it
// money, from being posted. None of these characters is escaped in JSON, and those of a response's id stand in a path
// as they are (RFC 3986, pchar).

const RESPONSE_ID = /^[\w.~!$&'()*+,;=:@-]{1,256}$/;
const ITEM_ID = /^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/;

/** No id that is kept is longer. */
export const KEPT_ID_BYTES_MAX = 256;
/** So many items of a response are kept. */
export const KEPT_ITEMS_MAX = 64;

export function isKeptResponseId(id: string): boolean {
  return RESPONSE_ID.test(id);
}

export function isKeptItemId(id: string): boolean {
  return ITEM_ID.test(id);
}
