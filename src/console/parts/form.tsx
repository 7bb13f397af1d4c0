// Form fields, dialogs, and the state of sending a form.

import type { ComponentChildren, InputHTMLAttributes } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { Answer, Refusal } from '../api.ts';

/** The hint of a field for a slug or a policy's name. */
export const NAME_HINT = 'Lowercase letters, digits and dashes.';

interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly children: (ids: { readonly id: string; readonly 'aria-describedby'?: string }) => ComponentChildren;
}

function Field({ label, hint, children }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, ...(hint === undefined ? {} : { 'aria-describedby': `${id}-hint` }) })}
      {hint !== undefined && (
        <p class="note" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

interface TextFieldProps {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly hint?: ComponentChildren;
  readonly type?: 'text' | 'email' | 'password' | 'url' | 'date' | 'datetime-local' | 'number';
  readonly isRequired?: boolean;
  readonly placeholder?: string;
  readonly list?: string;
}

export function TextField({
  label,
  value,
  onValue,
  hint,
  type = 'text',
  isRequired,
  placeholder,
  list,
}: TextFieldProps) {
  return (
    <Field label={label} hint={hint}>
      {(ids) => (
        <input
          {...({ ...ids, type, value, placeholder, list } as InputHTMLAttributes<HTMLInputElement>)}
          required={isRequired}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface SelectFieldProps {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly options: readonly (string | { readonly id: string; readonly name: string })[];
  readonly hint?: ComponentChildren;
}

export function SelectField({ label, value, onValue, options, hint }: SelectFieldProps) {
  return (
    <Field label={label} hint={hint}>
      {(ids) => (
        <select {...ids} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
          {options.map((option) => {
            const { id, name } = typeof option === 'string' ? { id: option, name: option } : option;
            return (
              <option key={id} value={id}>
                {name}
              </option>
            );
          })}
        </select>
      )}
    </Field>
  );
}

export interface Submission<T> {
  readonly isBusy: boolean;
  readonly refusal: Refusal | null;
  readonly run: (send: () => Promise<Answer<T>>) => Promise<void>;
}

/** The state of sending a form. A second `run` while one is under way does nothing. `then` gets a successful answer. */
export function useSubmit<T>(then: (data: T) => void): Submission<T> {
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const isUnderWay = useRef(false);
  const run = async (send: () => Promise<Answer<T>>) => {
    if (isUnderWay.current) return;
    isUnderWay.current = true;
    setBusy(true);
    setRefusal(null);
    const answer = await send();
    isUnderWay.current = false;
    setBusy(false);
    if (answer.ok) then(answer.data);
    else setRefusal(answer.refusal);
  };
  return { isBusy, refusal, run };
}

export function FormRefusal({ refusal }: { readonly refusal: Refusal | null }) {
  return (
    <div role="alert">
      {refusal !== null && (
        <p class="refused">
          {refusal.message || 'The gateway did not accept this.'}{' '}
          {refusal.requestId !== null && <code>{refusal.requestId}</code>}
        </p>
      )}
    </div>
  );
}

interface DialogProps {
  readonly title: string;
  /**
   * Without `onClose` neither Escape nor a click closes the dialog; its content has to offer a way out. Where it
   * returns false, the dialog stays open.
   */
  readonly onClose?: () => unknown;
  readonly children: ComponentChildren;
  /** A panel at the side of the page. A click outside closes it. */
  readonly isPanel?: boolean;
}

/** The browser's modal dialog. The browser keeps the focus inside, closes it on Escape, and gives the focus back. */
export function Dialog({ title, onClose, children, isPanel = false }: DialogProps) {
  const isKept = onClose === undefined;
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      class={isPanel ? 'panel' : undefined}
      aria-labelledby={id}
      onClose={({ currentTarget }) => {
        // Removing the dialog from the page closes it, too. Then nobody has asked to close it.
        if (!currentTarget.isConnected) return;
        if (isKept || onClose() === false) currentTarget.showModal();
      }}
      onCancel={(event) => isKept && event.preventDefault()}
      // Selecting text may begin inside and end outside. Only a press that begins outside closes the panel.
      onPointerDown={(event) => isPanel && event.target === element.current && onClose?.()}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id={id}>{title}</h2>
          {!isKept && (
            <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
              ✕
            </button>
          )}
        </header>
        {children}
      </div>
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly verb: string;
  readonly send: () => Promise<Answer<unknown>>;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Asks before an action that cannot be undone, and sends it. */
export function Confirm({ title, children, verb, send, onDone, onClose }: ConfirmProps) {
  const { isBusy, refusal, run } = useSubmit<unknown>(() => {
    onDone();
    onClose();
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{children}</p>
      <FormRefusal refusal={refusal} />
      <footer class="dialog-foot">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="danger" disabled={isBusy} onClick={() => void run(send)}>
          {verb}
        </button>
      </footer>
    </Dialog>
  );
}
