// Makes the placeholders of cloaked values, and finds them again in what a model writes. They are derived from the
// values with the organization's key, so that every turn and every machine gets the same ones and nothing is stored.

import { Buffer } from 'node:buffer';
import { createHmac } from 'node:crypto';
import { isDigit } from './detectors/characters.ts';
import { kindLetterOf, normalizedValue } from './entities.ts';
import type { Cloak } from './policy.ts';

const DIGITS = 12;
const TOKEN_BYTES = 3 + DIGITS;
const ADDRESS_END = Buffer.from('@cloak.invalid');
const ADDRESS_BYTES = TOKEN_BYTES + ADDRESS_END.length;
/** `TG` and a letter with fewer digits may be anything. */
const PARTIAL_DIGITS_MIN = 6;

/** The scopes within which equal values get equal placeholders. */
export interface CloakScopes {
  /** The organization's key (cloak-key.ts). */
  readonly key: Uint8Array;
  readonly apiKeyId: string;
  readonly conversation: string;
}

/** The placeholders of one request, and what each of them stands for. */
export class Placeholders {
  private readonly scopes: CloakScopes;
  /** For each placeholder: the value, and whether replies get it back. */
  private readonly values = new Map<string, { readonly value: string; readonly restore: boolean }>();
  private readonly made = new Map<string, string>();

  constructor(scopes: CloakScopes) {
    this.scopes = scopes;
  }

  get size(): number {
    return this.values.size;
  }

  /** The placeholders whose values replies get back. */
  entries(): (readonly [string, string])[] {
    return [...this.values].flatMap(([placeholder, { value, restore }]) =>
      restore ? [[placeholder, value] as const] : [],
    );
  }

  of(entity: string, value: string, { form, scope, restore }: Cloak): string {
    const letter = kindLetterOf(entity);
    const name = `${form} ${scope} ${letter} ${value}`;
    const known = this.made.get(name);
    if (known !== undefined) return known;
    const normalized = normalizedValue(entity, value);
    // If two values of a request would share a placeholder, the later value takes the next one.
    for (let block = 0; ; block++) {
      const token = `TG${letter}${this.digits(letter, normalized, scope, block)}`;
      const placeholder = form === 'token' ? token : `${token.toLowerCase()}${ADDRESS_END.toString()}`;
      const taken = this.values.get(placeholder);
      if (taken !== undefined && taken.value !== value) continue;
      this.values.set(placeholder, { value, restore: restore || taken?.restore === true });
      this.made.set(name, placeholder);
      return placeholder;
    }
  }

  private digits(letter: string, normalized: string, scope: Cloak['scope'], block: number): string {
    const { key, apiKeyId, conversation } = this.scopes;
    const within = scope === 'organization' ? '' : scope === 'key' ? apiKeyId : conversation;
    const mac = createHmac('sha256', key)
      .update(JSON.stringify([letter, scope, within, block, normalized]))
      .digest();
    return String(mac.readUIntBE(0, 6) % 10 ** DIGITS).padStart(DIGITS, '0');
  }
}

/** A placeholder in a text. */
export interface FoundPlaceholder {
  readonly start: number;
  readonly end: number;
  /** null: it looks like a placeholder or a part of one, but the request has not made it. */
  readonly value: string | null;
}

/** The values of a request's placeholders, which its reply gets back. */
export class RestorableValues {
  private readonly values: ReadonlyMap<string, string>;

  constructor(entries: readonly (readonly [string, string])[]) {
    this.values = new Map(entries);
  }

  get size(): number {
    return this.values.size;
  }

  entries(): (readonly [string, string])[] {
    return [...this.values];
  }

  /** Appends the placeholders in bytes[start, end). */
  find(bytes: Buffer, start: number, end: number, found: FoundPlaceholder[]): void {
    let at = start;
    while (at + 2 < end) {
      const digits = digitsAt(bytes, at, end);
      if (digits === 0) {
        at += 1;
        continue;
      }
      const length = lengthAt(bytes, at, end);
      const value = length === 0 ? undefined : this.values.get(bytes.toString('latin1', at, at + length));
      const behind = at + (value === undefined ? 3 + digits : length);
      if (value !== undefined || digits >= PARTIAL_DIGITS_MIN)
        found.push({ start: at, end: behind, value: value ?? null });
      at = behind;
    }
  }

  /** Where an incomplete placeholder begins at the end of these bytes; `end`: there is none. */
  holdFrom(bytes: Buffer, start: number, end: number): number {
    for (let at = Math.max(start, end - ADDRESS_BYTES + 1); at < end; at++) {
      const first = bytes[at];
      if (first !== 0x54 && first !== 0x74) continue;
      if (mayBecome(bytes, at, end)) return at;
    }
    return end;
  }
}

/** How many digits follow `TG` or `tg` and a letter here, up to the number that a placeholder has. */
function digitsAt(bytes: Buffer, at: number, end: number): number {
  const first = bytes[at];
  const isUpper = first === 0x54;
  if (!isUpper && first !== 0x74) return 0;
  const letter = bytes[at + 2] as number;
  if (
    isUpper
      ? bytes[at + 1] !== 0x47 || letter < 0x41 || letter > 0x5a
      : bytes[at + 1] !== 0x67 || letter < 0x61 || letter > 0x7a
  )
    return 0;
  let digits = 0;
  while (digits < DIGITS && at + 3 + digits < end && isDigit(bytes[at + 3 + digits] as number)) digits += 1;
  return digits;
}

/** The length in bytes of a complete placeholder here; 0: there is none. */
function lengthAt(bytes: Buffer, at: number, end: number): number {
  if (digitsAt(bytes, at, end) < DIGITS) return 0;
  if (bytes[at] === 0x54) return TOKEN_BYTES;
  const behind = at + ADDRESS_BYTES;
  return behind <= end && bytes.compare(ADDRESS_END, 0, ADDRESS_END.length, at + TOKEN_BYTES, behind) === 0
    ? ADDRESS_BYTES
    : 0;
}

/** Whether the bytes up to `end` are the beginning of a placeholder, but not a complete one. */
function mayBecome(bytes: Buffer, at: number, end: number): boolean {
  const isUpper = bytes[at] === 0x54;
  const length = end - at;
  if (length >= (isUpper ? TOKEN_BYTES : ADDRESS_BYTES)) return false;
  for (let index = 1; index < length; index++) {
    const byte = bytes[at + index] as number;
    if (index === 1 && byte !== (isUpper ? 0x47 : 0x67)) return false;
    if (index === 2 && (isUpper ? byte < 0x41 || byte > 0x5a : byte < 0x61 || byte > 0x7a)) return false;
    if (index > 2 && index < TOKEN_BYTES && !isDigit(byte)) return false;
    if (index >= TOKEN_BYTES && byte !== ADDRESS_END[index - TOKEN_BYTES]) return false;
  }
  return true;
}
