// Encrypts secrets that must be read again but never be stored in clear (provider keys, webhook secrets): AES-256-GCM
// with a data key for each record, which is wrapped under a key derived from MASTER_KEY.

import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

/** The current key seals and opens. Previous keys only open. */
export interface MasterKeys {
  readonly current: Buffer;
  readonly previous: readonly Buffer[];
}

export interface SecretBox {
  /**
   * `bindTo` names the record and its owner. The box opens only for the same name, so a sealed secret cannot be moved
   * to another row.
   */
  seal(secret: string, bindTo: string): Buffer;
  /** Throws OtherMasterKey if the master key is unknown, or an Error if the bytes are damaged or of another record. */
  open(sealed: Buffer, bindTo: string): string;
  /**
   * The same secret under the current master key; null: it is under that key already. Only the data key is opened, so
   * the secret itself does not come into memory, and damage to it is found only by `open`. Throws like `open`
   * otherwise.
   */
  rewrap(sealed: Buffer, bindTo: string): Buffer | null;
  /** The id of the current master key. */
  readonly keyId: string;
}

//  format 2:  1 byte format | 8 bytes key id | 12 nonce, 16 tag, 32 wrapped data key | 12 nonce, 16 tag, ciphertext
//  format 1:  1 byte format | 8 bytes key id | 12 bytes nonce | 16 bytes tag | ciphertext, under the master key itself
//
// Both parts of format 2 are bound to the record. Only the wrapped key is bound to the key id, so that a secret moves
// to another master key by wrapping the 32 bytes of its data key again.
const FORMAT = 2;
const FORMAT_WITHOUT_DATA_KEY = 1;
const KEY_ID_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const DATA_KEY_BYTES = 32;
const HEAD_BYTES = 1 + KEY_ID_BYTES;
const WRAPPED_BYTES = NONCE_BYTES + TAG_BYTES + DATA_KEY_BYTES;
const CONTENT_MARK = Buffer.of(FORMAT);

interface WrappingKey {
  readonly id: Buffer;
  readonly key: Buffer;
}

/** The secret was sealed under a master key that this process does not have. */
export class OtherMasterKey extends Error {}

export function createSecretBox({ current, previous }: MasterKeys): SecretBox {
  const sealing = wrappingKey(current);
  const opening = new Map([current, ...previous].map(wrappingKey).map((key) => [key.id.toString('hex'), key]));
  const keyOf = (sealed: Buffer, bindTo: string): WrappingKey => {
    const isKnown = sealed[0] === FORMAT || sealed[0] === FORMAT_WITHOUT_DATA_KEY;
    const bytesMin = HEAD_BYTES + NONCE_BYTES + TAG_BYTES + (sealed[0] === FORMAT ? WRAPPED_BYTES : 0);
    if (!isKnown || sealed.length < bytesMin) throw new Error(`the sealed secret of ${bindTo} is damaged`);
    const found = opening.get(keyIdOf(sealed));
    if (found !== undefined) return found;
    throw new OtherMasterKey(
      `the secret of ${bindTo} was encrypted with another MASTER_KEY; start with that one, or with that one as ` +
        `MASTER_KEY_PREVIOUS, or apply the configuration again`,
    );
  };
  const sealBytes = (secret: Buffer, bindTo: string): Buffer => {
    const dataKey = randomBytes(DATA_KEY_BYTES);
    const content = encrypt(dataKey, secret, contentData(bindTo));
    return Buffer.concat([wrap(sealing, dataKey, bindTo), content]);
  };
  const seal = (secret: string, bindTo: string): Buffer => sealBytes(Buffer.from(secret, 'utf8'), bindTo);
  const open = (sealed: Buffer, bindTo: string): string => {
    const master = keyOf(sealed, bindTo);
    return undamaged(bindTo, () => {
      const isPlain = sealed[0] === FORMAT_WITHOUT_DATA_KEY;
      const opened = isPlain
        ? decrypt(master.key, sealed.subarray(HEAD_BYTES), wrappedData(sealed, bindTo))
        : decrypt(unwrap(master, sealed, bindTo), sealed.subarray(HEAD_BYTES + WRAPPED_BYTES), contentData(bindTo));
      return opened.toString('utf8');
    });
  };
  return {
    seal,
    open,
    rewrap(sealed, bindTo) {
      const master = keyOf(sealed, bindTo);
      if (sealed[0] === FORMAT_WITHOUT_DATA_KEY) {
        const secret = undamaged(bindTo, () =>
          decrypt(master.key, sealed.subarray(HEAD_BYTES), wrappedData(sealed, bindTo)),
        );
        const moved = sealBytes(secret, bindTo);
        secret.fill(0);
        return moved;
      }
      if (master.id.equals(sealing.id)) return null;
      const dataKey = undamaged(bindTo, () => unwrap(master, sealed, bindTo));
      const wrapped = wrap(sealing, dataKey, bindTo);
      dataKey.fill(0);
      return Buffer.concat([wrapped, sealed.subarray(HEAD_BYTES + WRAPPED_BYTES)]);
    },
    keyId: sealing.id.toString('hex'),
  };
}

function undamaged<T>(bindTo: string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    throw new Error(`the sealed secret of ${bindTo} is damaged`, { cause: error });
  }
}

/** The id of the master key that a secret was sealed under. */
export function keyIdOf(sealed: Buffer): string {
  return sealed.subarray(1, HEAD_BYTES).toString('hex');
}

function wrappingKey(masterKey: Buffer): WrappingKey {
  const key = Buffer.from(hkdfSync('sha256', masterKey, '', 'tollgate provider key encryption', 32));
  return { key, id: createHash('sha256').update('tollgate key id').update(key).digest().subarray(0, KEY_ID_BYTES) };
}

function wrap({ id, key }: WrappingKey, dataKey: Buffer, bindTo: string): Buffer {
  const head = Buffer.concat([Buffer.of(FORMAT), id]);
  return Buffer.concat([head, encrypt(key, dataKey, wrappedData(head, bindTo))]);
}

function unwrap({ key }: WrappingKey, sealed: Buffer, bindTo: string): Buffer {
  return decrypt(key, sealed.subarray(HEAD_BYTES, HEAD_BYTES + WRAPPED_BYTES), wrappedData(sealed, bindTo));
}

/** The data that a wrapped key is bound to. */
function wrappedData(sealed: Buffer, bindTo: string): Buffer {
  return Buffer.concat([sealed.subarray(0, HEAD_BYTES), Buffer.from(bindTo, 'utf8')]);
}

function contentData(bindTo: string): Buffer {
  return Buffer.concat([CONTENT_MARK, Buffer.from(bindTo, 'utf8')]);
}

function encrypt(key: Buffer, plain: Buffer, boundTo: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(boundTo);
  const ciphertext = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), ciphertext]);
}

function decrypt(key: Buffer, sealed: Buffer, boundTo: Buffer): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(boundTo);
  decipher.setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  // In GCM, `final` adds no bytes. The result is not concatenated, so that there is no second copy of the secret.
  const plain = decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES));
  decipher.final();
  return plain;
}
