// A file that a client of an organization uploaded (spec 2.2), without its bytes.

export interface MediaObject {
  readonly id: string;
  readonly organizationId: string;
  /** The type that its bytes show (sniff-type.ts), never the type that its uploader declared. */
  readonly contentType: string;
  readonly bytes: number;
  readonly createdAtMs: number;
  /** The last time somebody uploaded these bytes. */
  readonly uploadedAtMs: number;
}

/** A file that has been received whole and not yet been kept. */
export interface ReceivedFile {
  readonly sha256: Buffer;
  readonly bytes: number;
  readonly contentType: string;
}

export interface MediaLimits {
  /** The largest size of a file. */
  readonly fileBytesMax: number;
  /** The most bytes of all files of an organization together. */
  readonly organizationBytesMax: number;
}
