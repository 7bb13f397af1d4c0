// A file that a client of an organization uploaded (spec 2.2): what is known of it beside its bytes.

export interface MediaObject {
  readonly id: string;
  readonly organizationId: string;
  /** What its bytes show it to be (sniff-type.ts); never what its uploader declared. */
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
  /** Of one file. */
  readonly fileBytesMax: number;
  /** Of all files of an organization. */
  readonly organizationBytesMax: number;
}
