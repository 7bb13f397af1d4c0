// Shows loaded data, or that it is loading, empty or refused.

import type { ComponentChildren } from 'preact';
import type { Refusal } from '../api.ts';
import { adviceOn } from '../logic/refusals.ts';
import type { Load } from '../state/load.ts';
import type { Pages } from '../state/pages.ts';
import { FormRefusal } from './form.tsx';

interface LoadedProps<T> {
  readonly load: Load<T>;
  /** The name of the permission that the data needs, for the advice on a refusal. */
  readonly permission: string;
  readonly isEmpty?: (data: T) => boolean;
  /** Shown where there is no data: what would fill it. */
  readonly empty?: ComponentChildren;
  readonly children: (data: T) => ComponentChildren;
}

export function Loaded<T>({ load, permission, isEmpty, empty, children }: LoadedProps<T>) {
  const { data, refusal, isLoading, reload } = load;
  if (refusal !== null) return <RefusalNotice refusal={refusal} permission={permission} reload={reload} />;
  if (data === null) return isLoading ? <Loading /> : <Empty>{empty}</Empty>;
  return (
    <div class={isLoading ? 'dimmed' : undefined} aria-busy={isLoading}>
      {isEmpty?.(data) ? <Empty>{empty}</Empty> : children(data)}
    </div>
  );
}

export function Loading() {
  return (
    <div class="waiting" role="status">
      <span class="unseen">Loading</span>
      <i />
      <i />
      <i />
    </div>
  );
}

export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <div class="empty">{children}</div>;
}

/** The button below a listing that loads the next pages. It is gone once the listing is complete. */
export function MoreButton({ more, name = 'More' }: { readonly more: Pages<unknown>['more']; readonly name?: string }) {
  if (more.read === null) return null;
  return (
    <div class="more">
      <FormRefusal refusal={more.refusal} />
      <button type="button" disabled={more.isBusy} onClick={more.read}>
        {name}
      </button>
    </div>
  );
}

interface NoticeProps {
  readonly refusal: Refusal;
  readonly permission: string;
  readonly reload?: () => void;
}

export function RefusalNotice({ refusal, permission, reload }: NoticeProps) {
  const { title, advice, mayRepeat } = adviceOn(refusal.status, permission);
  return (
    <div class="notice" role="alert">
      <strong>{title}</strong>
      <p>{advice}</p>
      <p class="note">
        {refusal.message}
        {refusal.requestId !== null && (
          <>
            {' '}
            Request <code>{refusal.requestId}</code>
          </>
        )}
      </p>
      {mayRepeat && reload !== undefined && (
        <button type="button" onClick={reload}>
          Try again
        </button>
      )}
    </div>
  );
}
