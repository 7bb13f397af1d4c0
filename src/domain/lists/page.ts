// One page of a list: what is asked for, and what comes back.

export interface PageParams {
  /** 1 to 200; 50 when not given. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | null | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** null: this was the last page. */
  readonly nextCursor: string | null;
}
