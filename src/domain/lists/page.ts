// One page of a list: the parameters that ask for it, and the result.

export interface PageParams {
  /** 1 to 200; 50 when not given. */
  readonly limit?: number | undefined;
  /** The `nextCursor` of the previous page. */
  readonly cursor?: string | null | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** null: this was the last page. */
  readonly nextCursor: string | null;
}
